"""A universal machine: it reads another machine's table from its tape and does what that machine does."""

from tapegrad.machines.builder import MachineBuilder
from tapegrad.machines.model import TuringMachine

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
