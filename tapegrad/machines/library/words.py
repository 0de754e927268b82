"""Machines that recognise and copy words."""

from tapegrad.machines.builder import MachineBuilder
from tapegrad.machines.model import TuringMachine


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
