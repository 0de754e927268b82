"""A universal machine: it reads another machine's table from its tape and does what that machine does."""

from tapegrad.errors import Refused
from tapegrad.machines.builder import MachineBuilder
from tapegrad.machines.model import LEFT, RIGHT, STAY, Configuration, TuringMachine, Word
from tapegrad.source import Rewriting

MARKED = {"0": "O", "1": "I"}
"""A bit that has been dealt with in this round."""
PLAIN = {"O": "0", "I": "1", "x": ":"}
"""What the marks of a round are turned back into."""


def universal() -> TuringMachine:
    """Runs any one-tape machine, laid out on one tape as `universal_code` does:

        left stack $ :key,actionM:key,actionM ... ; state,symbol ] right stack

    A key is a state and a symbol in binary, an action the next state and the written symbol, M one of L,
    R, S. Between ; and ] stand the current state and symbol. The simulated tape left of its head is a
    stack that grows outwards to the left, the rest one that grows outwards to the right, so both are
    infinite, nothing is ever shifted, and an empty stack yields the blank, whose code is all 0.

    A round: for each bit of state and symbol, sweep the table and cross out (x) the rules whose key has
    another bit there; copy the action of the one rule left over state and symbol; if it moves right, push
    the symbol on the left stack and pop the next from the right one (or the other way round); clean up.
    It halts when no rule is left, which is when the simulated machine halts. 47 states, 14 symbols.
    """
    b = MachineBuilder("universal", symbols="01:,;$]LRS")
    with b.loop():
        b.state("round")
        with b.until("$"):
            for mark in b.each("O", "I", "x"):
                b.write(PLAIN[mark])
            b.move("left")
        _cross_out_rules(b)
        b.state("find rule")
        b.seek("left", ":", "$")
        with b.if_("$"):
            b.halt()
        _copy_action(b)
        for letter in b.each("L", "R"):
            _push_symbol(b, to="left" if letter == "R" else "right")
            _pop_symbol(b, source="right" if letter == "R" else "left")
        b.state("end of round")
        b.seek("right", "]")
    return b.machine()


def _cross_out_rules(b: MachineBuilder) -> None:
    """From the left of the table to ], with only the rule that fits still marked by a colon."""
    with b.loop():
        b.state("next bit")
        b.seek("right", ";")
        b.move("right")
        b.skip("right", "O", "I", ",")
        with b.if_("]"):
            b.break_()
        for bit in b.each("0", "1"):
            b.write(MARKED[bit])
            b.state(f"carry {bit}")
            b.seek("left", "$")
            b.move("right")
            b.state(f"compare {bit}")
            with b.until(";"):
                with b.if_(":"):
                    b.move("right")
                    b.state(f"compare {bit} with key")
                    b.skip("right", "O", "I")
                    with b.if_(bit):
                        b.write(MARKED[bit])
                    with b.else_():
                        b.state(f"cross out, {bit}")
                        b.seek("left", ":")
                        b.write("x")
                b.move("right")


def _copy_action(b: MachineBuilder) -> None:
    """From the colon of the rule to its letter; what was state and symbol is overwritten bit by bit."""
    with b.loop():
        b.state("next action bit")
        b.seek("right", ",")
        b.move("right")
        b.skip("right", "O", "I")
        with b.if_("L", "R", "S"):
            b.break_()
        for bit in b.each("0", "1"):
            b.write(MARKED[bit])
            b.state(f"copy {bit}")
            b.seek("right", ";")
            b.move("right")
            b.skip("right", "0", "1", ",")
            b.write(bit)
        b.state("back to rule")
        b.seek("left", ":")


def _push_symbol(b: MachineBuilder, to: str) -> None:
    """From the table to ]; the bits of the symbol go to the far end one by one and stay behind marked."""
    b.seek("right", ";")
    with b.loop():
        b.state(f"push {to}")
        b.seek("right", ",")
        b.move("right")
        b.skip("right", "O", "I")
        with b.if_("]"):
            b.break_()
        for bit in b.each("0", "1"):
            b.write(MARKED[bit])
            b.state(f"push {bit} {to}")
            b.seek(to, "_")
            b.write(bit)
        b.state(f"pushed {to}")
        b.seek("right" if to == "left" else "left", ";")


def _pop_symbol(b: MachineBuilder, source: str) -> None:
    """From ] back to the comma; a stack gives its last bit first, so the symbol is filled from the right."""
    inwards = "left" if source == "right" else "right"
    with b.loop():
        b.state(f"pop {source}")
        b.move("left")
        b.skip("left", "0", "1")
        with b.if_(","):
            b.break_()
        b.state(f"to the {source} end")
        b.seek(source, "_")
        b.move(inwards)
        b.state(f"take {source} bit")
        with b.if_("1"):
            b.write("_")
            _fill_in(b, "1", inwards)
        with b.else_():
            with b.if_("0"):
                b.write("_")
            _fill_in(b, "0", inwards)


def _fill_in(b: MachineBuilder, bit: str, inwards: str) -> None:
    """Writes over the last marked bit of the symbol, and ends on ]."""
    b.state(f"bring {bit} {inwards}")
    b.seek(inwards, "]")
    b.move("left")
    b.state(f"fill in {bit}")
    b.skip("left", "0", "1")
    b.write(bit)
    b.state("filled in")
    b.seek("right", "]")


# Machines and their configurations as the universal machine reads them, and back.


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
