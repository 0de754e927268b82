"""Ready machines: counting, adding, multiplying, recognising, copying, busy beavers, a universal machine."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from tapegrad.errors import SourceError
from tapegrad.machines.builder import MachineBuilder
from tapegrad.machines.formats import bbchallenge
from tapegrad.machines.model import TuringMachine
from tapegrad.machines.universal import universal, universal_code

# The machines that run longest for their size before they halt, from an empty tape.


@dataclass(frozen=True)
class BusyBeaver:
    """A champion, with what is known of its run (the last step into the halting state counts)."""

    text: str
    steps: int
    marks: int
    """Cells that are not blank at the end."""


BUSY_BEAVERS = {
    "2x2": BusyBeaver("1RB1LB_1LA1RZ", 6, 4),
    "3x2": BusyBeaver("1RB1RZ_1LB0RC_1LC1LA", 21, 5),
    "4x2": BusyBeaver("1RB1LB_1LA0LC_1RZ1LD_1RD0RA", 107, 13),
    "5x2": BusyBeaver("1RB1LC_1RC1RB_1RD0LE_1LA1LD_1RZ0LA", 47_176_870, 4_098),
    "2x3": BusyBeaver("1RB2LB1RZ_2LA2RB1LB", 38, 9),
    "2x4": BusyBeaver("1RB2LA1RA1RA_1LB1LA3RB1RZ", 3_932_964, 2_050),
}
"""Champions by number of states and symbols. All are proved to be the last to halt for their size."""


def busy_beaver(size: str) -> TuringMachine:
    """The champion of this size, such as "5x2": 5 states, 2 symbols."""
    machine = bbchallenge.read(BUSY_BEAVERS[size].text.encode()).machine
    assert isinstance(machine, TuringMachine)
    return replace(machine, name=f"busy beaver {size}")


# Machines that count, add and multiply.


def increment() -> TuringMachine:
    """Adds one to a binary number: 1011 becomes 1100. The head ends on the digit that became 1."""
    b = MachineBuilder("increment", symbols="01")
    b.state("to the end")
    b.seek("right", "_")
    b.move("left")
    b.state("carry")
    with b.while_("1"):
        b.write("0")
        b.move("left")
    b.write("1")
    b.halt()
    return b.machine()


def addition() -> TuringMachine:
    """Adds two binary numbers: 1011+110 becomes 10001.

    The digits of the second number are taken off from the right one by one and added, carry and all, to
    the first; O and I are digits of the sum that are final.
    """
    b = MachineBuilder("addition", symbols="01+")
    with b.loop():
        b.state("next digit")
        b.seek("right", "_")
        b.move("left")
        with b.if_("+"):
            b.break_()
        for digit in b.each("0", "1"):
            b.state(f"add {digit}")
            b.write("_")
            b.seek("left", "+")
            b.move("left")
            b.skip("left", "O", "I")
            with b.if_("1"):
                _add_to_one(b, digit)
            with b.else_():
                b.write("I" if digit == "1" else "O")
    b.state("finish")
    b.write("_")
    b.move("left")
    with b.while_("O", "I"):
        for final in b.each("O", "I"):
            b.write("0" if final == "O" else "1")
        b.move("left")
    b.halt()
    return b.machine()


def _add_to_one(b: MachineBuilder, digit: str) -> None:
    if digit == "0":
        b.write("I")
        return
    b.write("O")
    b.move("left")
    b.state("carry")
    with b.while_("1"):
        b.write("0")
        b.move("left")
    b.write("1")


def multiplication() -> TuringMachine:
    """Multiplies two unary numbers: 11*111 becomes 111111, with nothing else left on the tape.

    For each 1 of the first number, every 1 of the second is marked (x) and copied behind an =.
    """
    b = MachineBuilder("multiplication", symbols="1*")
    b.seek("right", "_")
    b.write("=")
    b.state("rewind")
    b.seek("left", "_")
    b.move("right")
    b.state("take one")
    with b.if_("1"):
        b.write("_")
        b.seek("right", "*")
        b.move("right")
        with b.while_("1"):
            b.state("copy one")
            b.write("x")
            b.seek("right", "_")
            b.write("1")
            b.state("copied")
            b.seek("left", "x")
            b.move("right")
        b.state("unmark")
        b.move("left")
        with b.while_("x"):
            b.write("1")
            b.move("left")
        b.goto("rewind")
    b.state("clear")
    with b.until("="):
        b.write("_")
        b.move("right")
    b.write("_")
    b.move("right")
    b.halt()
    return b.machine()


# Machines that recognise and copy words.


def palindrome() -> TuringMachine:
    """Accepts the words over a and b that read the same backwards.

    Compares and erases the outermost letters until at most one is left.
    """
    b = MachineBuilder("palindrome", symbols="ab")
    with b.loop():
        b.state("first letter")
        with b.if_("_"):
            b.accept()
        for letter in b.each("a", "b"):
            b.write("_")
            b.move("right")
            b.state(f"find last {letter}")
            b.seek("right", "_")
            b.move("left")
            b.state(f"expect {letter}")
            with b.if_("_"):
                b.accept()
            with b.if_("b" if letter == "a" else "a"):
                b.reject()
            b.write("_")
            b.move("left")
        b.state("back")
        b.seek("left", "_")
        b.move("right")
    return b.machine()


def brackets() -> TuringMachine:
    """Accepts balanced words of round and square brackets, such as ([])().

    Finds the first closing bracket, checks the nearest open one on its left, and crosses out both.
    """
    b = MachineBuilder("brackets", symbols="()[]")
    with b.loop():
        b.state("find closing")
        b.seek("right", ")", "]", "_")
        with b.if_("_"):
            b.break_()
        for closing in b.each(")", "]"):
            b.write("x")
            b.state(f"match {closing}")
            b.seek("left", "(", "[", "_")
            with b.if_("(" if closing == ")" else "["):
                b.write("x")
            with b.else_():
                b.reject()
    b.state("any left open?")
    b.move("left")
    b.skip("left", "x")
    with b.if_("_"):
        b.accept()
    b.reject()
    return b.machine()


def copying() -> TuringMachine:
    """Copies a word over a and b: abb becomes abb#abb.

    A letter is in capitals while its copy is on the way.
    """
    b = MachineBuilder("copying", symbols="ab")
    b.state("put separator")
    b.seek("right", "_")
    b.write("#")
    b.state("rewind")
    b.seek("left", "_")
    b.move("right")
    with b.while_("a", "b"):
        for letter in b.each("a", "b"):
            b.write(letter.upper())
            b.state(f"carry {letter}")
            b.seek("right", "_")
            b.write(letter)
            b.state("return")
            b.seek("left", "A", "B")
            b.write(letter)
            b.move("right")
    b.halt()
    return b.machine()


@dataclass(frozen=True)
class ReadyMachine:
    """A machine that comes with the package."""

    summary: str
    example: Callable[[], tuple[str, ...]]
    """Input words that show it at work."""
    build: Callable[[], TuringMachine]


def _beaver(size: str) -> ReadyMachine:
    states, symbols = size.split("x")
    steps = BUSY_BEAVERS[size].steps
    summary = f"runs {steps:,} steps, the most that {states} states and {symbols} symbols can before halting"
    return ReadyMachine(summary, lambda: ("",), partial(busy_beaver, size))


READY: dict[str, ReadyMachine] = {
    "increment": ReadyMachine("adds one to a binary number", lambda: ("1011",), increment),
    "addition": ReadyMachine("adds two binary numbers", lambda: ("1011+110",), addition),
    "multiplication": ReadyMachine("multiplies two unary numbers", lambda: ("11*111",), multiplication),
    "palindrome": ReadyMachine("accepts words that read the same backwards", lambda: ("abba",), palindrome),
    "brackets": ReadyMachine("accepts balanced round and square brackets", lambda: ("([])()",), brackets),
    "copying": ReadyMachine("copies a word behind a separator", lambda: ("abb",), copying),
    **{f"busy-beaver-{size}": _beaver(size) for size in BUSY_BEAVERS},
    "universal": ReadyMachine(
        "runs the machine whose table is on its tape; here: increment on 11",
        lambda: (universal_code(increment(), "11"),),
        universal,
    ),
}


def ready(name: str) -> TuringMachine:
    """The ready machine of this name."""
    if name not in READY:
        raise SourceError(f"there is no ready machine {name!r}", advice=f"Choose one of {', '.join(READY)}.")
    return READY[name].build()
