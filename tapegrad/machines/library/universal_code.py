"""Machines and their configurations as the universal machine reads them, and back."""

from tapegrad.errors import Refused
from tapegrad.lowering.rewriting import Rewriting
from tapegrad.machines.library.universal import universal
from tapegrad.machines.model import LEFT, RIGHT, STAY, Configuration, TuringMachine, Word

_LETTERS = {LEFT: "L", STAY: "S", RIGHT: "R"}


def universal_code(machine: TuringMachine, word: Word = "") -> str:
    """The input that makes the universal machine run `machine` on `word`."""
    return _Code(machine).layout(machine.start(word))[1]


def simulation(machine: TuringMachine) -> Rewriting:
    """The universal machine as a rewriting of `machine`: each configuration decodes once, when a round
    begins with the head on the $."""
    code = _Code(machine)
    return Rewriting("universal machine", machine, universal(), code.encode, code.decode)


class _Code:
    """Numbers for a machine's states and symbols, and its table in those numbers.

    The code of a symbol ends in a bit that says whether this is cell 0; without it nobody could tell
    from two stacks where the simulated tape began. So there are two entries in the table for each rule.
    """

    def __init__(self, machine: TuringMachine) -> None:
        if machine.tapes != 1:
            raise Refused(
                f"the universal machine runs one-tape machines; {machine.name!r} has {machine.tapes} tapes",
                advice="Join the tapes with one_tape first.",
            )
        self.machine = machine
        self.symbols = _numbered(machine.alphabet)
        self.states = _numbered(machine.states)
        self.width = len(self.symbols[machine.blank]) + 1
        self.table = "".join(
            f":{self.states[state]}{self.symbols[read[0]]}{origin}"
            f",{self.states[rule.state]}{self.symbols[rule.write[0]]}{origin}{_LETTERS[rule.moves[0]]}"
            for (state, read), rule in machine.rules.items()
            for origin in "01"
        )

    def layout(self, state: Configuration) -> tuple[str, str]:
        """The left stack, outermost bit first, and everything from the $ on."""
        (tape,), (head,) = state.tapes, state.heads
        cells = range(min(0, head, *tape), max(0, head, *tape) + 1)
        codes = {c: self.symbols[tape.get(c, self.machine.blank)] + str(int(c == 0)) for c in cells}
        left = "".join(codes[cell] for cell in cells if cell < head)
        right = "".join(codes[cell] for cell in reversed(cells) if cell > head)
        text = f"${self.table};{self.states[state.state]},{codes[head]}]{right}"
        return left[::-1], text

    def encode(self, state: Configuration) -> Configuration:
        left, text = self.layout(state)
        return Configuration("round", (dict(enumerate(left + text, -len(left))),), (0,))

    def decode(self, state: Configuration) -> Configuration | None:
        (tape,), (head,) = state.tapes, state.heads
        if state.state != "round" or tape.get(head) != "$":
            return None
        text = "".join(tape[cell] for cell in sorted(tape))
        left, _, rest = text.partition("$")
        register, _, right = rest.rpartition(";")[2].partition("]")
        number, _, current = register.partition(",")
        blocks = [*self._blocks(left[::-1]), current, *reversed(self._blocks(right))]
        origin = next(place for place, block in enumerate(blocks) if block.endswith("1"))
        names = {code: symbol for symbol, code in self.symbols.items()}
        cells = {place - origin: names[block[:-1]] for place, block in enumerate(blocks)}
        states = {code: name for name, code in self.states.items()}
        content = {cell: symbol for cell, symbol in cells.items() if symbol != self.machine.blank}
        return Configuration(states[number], (content,), (len(left) // self.width - origin,))

    def _blocks(self, bits: str) -> list[str]:
        return [bits[place : place + self.width] for place in range(0, len(bits), self.width)]


def _numbered(names: tuple[str, ...]) -> dict[str, str]:
    width = max(1, (len(names) - 1).bit_length())
    return {name: f"{number:0{width}b}" for number, name in enumerate(names)}
