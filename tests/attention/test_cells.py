"""Records written cell by cell: covers of functions beside their tables, and what a sheet refuses."""

import numpy as np
import pytest

from tapegrad.attention.cells import Cell, Look, Part, Sheet, covered
from tapegrad.attention.digits import digits_of, number_of
from tapegrad.attention.language import slot_sign
from tapegrad.attention.tokens import Interpreter, Recall
from tapegrad.errors import SourceError


def value(cover: list, inputs: int) -> int:
    """The sum of what holds; no bit may be set twice."""
    total = 0
    for literals, number in cover:
        if all(inputs >> place & 1 == bit for place, bit in literals):
            assert not total & number
            total |= number
    return total


@pytest.mark.parametrize("bits", [0, 1, 3, 6])
def test_covers_give_the_table_again(bits):
    random = np.random.default_rng(bits)
    for most in (1, 2, 40):
        for _ in range(5):
            table = random.integers(-1, most + 1, 1 << bits)
            cover = covered(table)
            for inputs, wanted in enumerate(table.tolist()):
                if wanted >= 0:
                    assert value(cover, inputs) == wanted


def test_covers_are_small_where_bits_do_not_matter_to_each_other():
    table = np.array([(a & b) | (a ^ b) << 4 for b in range(16) for a in range(16)])
    assert len(covered(table)) == 4 * 3


def test_signs_of_slots():
    for count in (1, 5, 80):
        for chosen in (range(0), range(1), range(count // 2), range(count)):
            weights, bias = slot_sign(frozenset(chosen), count)
            signs = [bias + weights.get(slot, 0.0) for slot in range(count)]
            assert signs == [1.0 if slot in chosen else -1.0 for slot in range(count)]
            assert abs(sum(weights.values())) <= min(2 * len(chosen), 2 * (count - len(chosen)))


def test_digits():
    assert number_of(digits_of(0x1234, 4)) == 0x1234
    assert number_of(digits_of(-1, 2)) == 255


WORDS = ("<halt>", "<begin>", *"cdefghijklmnop")


def sheet(*cells: Cell, recalls: tuple[Recall, ...] = (), **addresses: dict[str, str]) -> Sheet:
    return Sheet("test", WORDS, cells, addresses, recalls)


def test_a_counter():
    """Two slots: the low half of a number, which goes up, and the high half with its carry."""
    low = Cell("low", (Part((Look("last", "low", (0, 1)),), lambda n: 4 + (n + 1) % 4),))
    look = Look("this", "low", (0, 1)), Look("last", "high", (0, 1))
    high = Cell("high", (Part(look, lambda low, high: 8 + (high + (low == 0)) % 4),))
    program = sheet(low, high).program()
    run = Interpreter(program)
    text = [1, 4, 8]
    following = run.feed(text)
    for step in range(1, 20):
        assert following == 4 + step % 4
        following = run.feed([following])
        assert following == 8 + step // 4 % 4
        following = run.feed([following])


def test_what_a_sheet_refuses():
    copy = Part((Look("last", "a", (0,)),), lambda bit: 2 + bit)
    with pytest.raises(SourceError, match="same name"):
        sheet(Cell("a", (copy,)), Cell("a", (copy,))).program()
    wide = Part(tuple(Look("last", "a", (0, 1, 2, 3)) for _ in range(5)), lambda *_: 2)
    with pytest.raises(SourceError, match="20 bits"):
        sheet(Cell("a", (wide,))).program()
    with pytest.raises(SourceError, match="are the same"):
        sheet(Cell("a", (copy, copy))).program()
    constant = Part((), lambda: 3)
    with pytest.raises(SourceError, match="same bit"):
        Interpreter(sheet(Cell("a", (copy, constant))).program()).feed([1, 2])


def test_two_answers_of_one_record_are_a_mistake():
    first = Part((Look("recalled", "same", (0,)),), lambda bit: 2 + bit)
    recall = Recall("same", ((1, "own: token[1]"),), (("token[0]", "same: token[0]"),))
    own = {"a": "a", "b": "b"}
    program = sheet(Cell("a", (first,)), Cell("b", (first,)), recalls=(recall,), own=own).program()
    assert Interpreter(program).feed([1, 4, 3]) == 3
    with pytest.raises(SourceError, match="two tokens"):
        Interpreter(program).feed([1, 2, 3])
