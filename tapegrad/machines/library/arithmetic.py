"""Machines that count, add and multiply."""

from tapegrad.machines.builder import MachineBuilder
from tapegrad.machines.model import TuringMachine


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
