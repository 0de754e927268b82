"""A universal machine: it reads another machine's table from its tape and does what that machine does."""

from functools import cache

from tapegrad.errors import Refused
from tapegrad.lowering.rewriting import Rewriting
from tapegrad.machines.builder import MachineBuilder
from tapegrad.machines.model import LEFT, RIGHT, STAY, Configuration, TuringMachine

_MOVES = {LEFT: "L", STAY: "S", RIGHT: "R"}


@cache
def universal() -> TuringMachine:
    """Runs any one-tape machine given as `encode` writes it.

    Tape 1 holds the table, one rule after another, ":state,read,next state,written symbol" and L, R or S.
    States and symbols are binary numbers of fixed widths v and w, the last two fields backwards. Tape 2
    holds the current state. Tape 3 is the simulated tape, w cells to a symbol, both ways infinite: symbol
    0 is the blank, and a cell never written counts as 0.

    For each step it tries the rules from the first; where state and symbol agree, it copies the next state
    and the written symbol right to left (so the fields are backwards, and the heads end where they
    began), counts a move of w cells along the field it has just copied, and goes back to the first rule.
    Where no rule agrees the simulated machine halts, and so does this one.
    """
    b = MachineBuilder("universal", symbols="01:,LRS", tapes=3)
    table, state, tape = b.tapes
    digit = table.reads("0", "1")
    agree = (table.reads("1") & tape.reads("1")) | (table.reads("0") & tape.reads("0", "_"))

    b.state("fetch")
    with b.while_(table.reads(":")):
        table.move("right")
        b.state("compare state")
        with b.while_(digit & table.same_as(state)):
            table.move("right")
            state.move("right")
        with b.if_(table.reads(",")):
            table.move("right")
            b.state("compare symbol")
            with b.while_(agree):
                table.move("right")
                tape.move("right")
            with b.if_(table.reads(",")):
                b.goto("apply")
            b.state("other symbol")
            table.move("left")
            with b.while_(digit):
                table.move("left")
                tape.move("left")
        b.state("next rule")
        state.move("left")
        state.seek("left", "_")
        state.move("right")
        table.seek("right", ":", "_")
    b.halt()

    b.state("apply")
    table.move("right")
    state.move("left")
    tape.move("left")
    with b.while_(digit):
        for bit in table.each("0", "1"):
            state.write(bit)
        state.move("left")
        table.move("right")
    state.move("right")
    table.move("right")
    b.state("write symbol")
    with b.while_(digit):
        for bit in table.each("0", "1"):
            tape.write(bit)
        tape.move("left")
        table.move("right")
    tape.move("right")
    for letter, direction in (("L", "left"), ("R", "right")):
        with b.if_(table.reads(letter)):
            table.move("left")
            b.state(f"move {direction}")
            with b.while_(digit):
                table.move("left")
                tape.move(direction)
    b.state("back to the first rule")
    table.seek("left", "_")
    table.move("right")
    b.goto("fetch")
    return b.machine()


def encode(machine: TuringMachine, word: str) -> tuple[str, str, str]:
    """The three input words that make the universal machine run `machine` on `word`."""
    code = _Code(machine)
    tape = "".join(code.symbol[symbol] for symbol in word)
    return code.table, code.state[machine.start_state], tape


def simulation(machine: TuringMachine) -> Rewriting:
    """The universal machine as a rewriting of `machine`: each configuration decodes once, at the beginning
    of each round, when the universal machine fetches the first rule."""
    code = _Code(machine)
    states = {number: state for state, number in code.state.items()}
    symbols = {number: symbol for symbol, number in code.symbol.items()}

    def lay_out(first: Configuration) -> Configuration:
        bits = {}
        for cell, symbol in first.tapes[0].items():
            for place, bit in enumerate(code.symbol[symbol]):
                bits[cell * code.width + place] = bit
        tapes = dict(enumerate(code.table)), dict(enumerate(code.state[first.state])), bits
        return Configuration("fetch", tapes, (0, 0, first.heads[0] * code.width))

    def decode(state: Configuration) -> Configuration | None:
        if state.state != "fetch" or state.heads[0] != 0:
            return None
        _, current, bits = state.tapes
        number = "".join(current[place] for place in range(len(current)))
        tape = {}
        for cell in sorted({place // code.width for place in bits}):
            block = range(cell * code.width, (cell + 1) * code.width)
            symbol = symbols["".join(bits.get(place, "0") for place in block)]
            if symbol != machine.blank:
                tape[cell] = symbol
        return Configuration(states[number], (tape,), (state.heads[2] // code.width,))

    return Rewriting("universal machine", machine, universal(), lay_out, decode)


class _Code:
    """The numbers of a machine's states and symbols, and its table in those numbers."""

    def __init__(self, machine: TuringMachine) -> None:
        if machine.tapes != 1:
            raise Refused(
                f"the universal machine runs machines with one tape, and {machine.name!r} has {machine.tapes}",
                advice="Join the tapes with one_tape first.",
            )
        self.symbol = _numbered(machine.alphabet)
        self.state = _numbered(machine.states)
        self.width = len(self.symbol[machine.blank])
        self.table = "".join(
            f":{self.state[state]},{self.symbol[read[0]]}"
            f",{self.state[rule.state][::-1]},{self.symbol[rule.write[0]][::-1]}{_MOVES[rule.moves[0]]}"
            for (state, read), rule in machine.rules.items()
        )


def _numbered(names: tuple[str, ...]) -> dict[str, str]:
    width = max(1, (len(names) - 1).bit_length())
    return {name: f"{number:0{width}b}" for number, name in enumerate(names)}
