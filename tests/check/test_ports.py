"""Memories of machines with random access as the checker has them; on constants, formulas fold to numbers."""

from types import SimpleNamespace
from typing import Any

import pytest

from tapegrad.programs.rv32 import RV32
from tapegrad.programs.subleq import Subleq
from tapegrad_check import CheckError
from tapegrad_check.core.nodes import FALSE, Nodes
from tapegrad_check.formulas.words import Word, number
from tapegrad_check.instructions.ports import Cells, Layout, Write, ring
from tapegrad_check.targets.heads import Bank, Heads, _banks

WORDS = [3, 14, 159, 26, 53]
"""An odd number of them: of two in a row, the even one may be the last."""


def worth(word: Word) -> int:
    assert set(word) <= {0, 1}
    return sum(bit << place for place, bit in enumerate(word))


def held(words: list[int]) -> dict[str, list[list[int]]]:
    return {"ram": [number(word, 8) for word in words]}


@pytest.mark.parametrize("words", [WORDS, WORDS[:4], WORDS[:3]])
def test_reads(words: list[int]) -> None:
    n = Nodes(1 << 12)
    for address in range(8):
        found = Cells(n, held(words)).read("ram", number(address, 3), 1)
        assert worth(found) == (words[address] if address < len(words) else 0)
        pair = worth(Cells(n, held(words)).read("ram", number(address, 3), 2))
        assert [pair & 255, pair >> 8] == ([*words, *[0] * 9])[address : address + 2]


@pytest.mark.parametrize("words", [WORDS, WORDS[:4]])
def test_writes(words: list[int]) -> None:
    n = Nodes(1 << 12)
    for address in range(8):
        for span in (1, 2):
            cells = Cells(n, held(words))
            cells.write(Write("ram", number(address, 3), [], number(0xA55A, 8 * span), span))
            wanted = list(words)
            for at, flips in ((address, 0x5A), (address + 1, 0xA5))[:span]:
                if at < len(wanted):
                    wanted[at] ^= flips
            assert list(map(worth, cells.memories["ram"])) == wanted


@pytest.mark.parametrize("machine", [RV32(64, input=3, output=4), Subleq(9, width=8), Subleq(32, width=16)])
def test_layouts_are_those_of_the_compiler(machine: RV32 | Subleq) -> None:
    layout = Layout.sized(machine.kind, machine.word, machine.ram, machine.input, machine.output)
    assert dict(layout.registers) == {name: own.width for name, own in machine.registers.items()}
    memories = {name: (own.width, own.words) for name, own in machine.memories.items()}
    assert dict(layout.memories) == memories
    assert layout.bits == len(layout.names()) == len(set(layout.names()))
    assert len(machine.traps) < 1 << layout.registers["trap"] <= 2 * len(machine.traps) + 2


def test_output_is_a_ring() -> None:
    written = number(0b1101_0111, 32)
    for output, bits in ((2, 1), (5, 3), (8, 3), (9, 4)):
        assert ring(Layout.sized("subleq", 8, 8, 1, output), written) == written[:bits]
    assert ring(Layout.sized("subleq", 8, 8, 1, 1), written) == [FALSE]


def test_banks() -> None:
    small = {bank.memory: bank for bank in _banks(Layout.sized("subleq", 8, 9, 3, 1))}
    assert {name: (bank.words, bank.address) for name, bank in small.items()} == {
        "ram": (9, 4), "input": (3, 2), "output": (1, 1),
    }  # fmt: skip
    assert [bank.written for bank in small.values()] == [True, False, True]
    even, odd = [bank for bank in _banks(Layout.sized("rv32im", 32, 20, 1, 1)) if bank.memory == "ram"]
    assert [(bank.side, bank.words, bank.address) for bank in (even, odd)] == [(0, 3, 3), (1, 2, 3)]
    assert [bank.number for bank in _banks(Layout.sized("rv32im", 32, 20, 1, 1))] == [0, 1, 2, 3, 4]


class TwoBanks(Heads):
    """Even and odd words, without a net; what heads find is looked up here."""

    def __init__(self, words: list[int]) -> None:
        self.n, self.words = Nodes(1 << 12), words
        self.banks = [Bank("ram", side, side, 3, 8, 4, True) for side in (0, 1)]

    def _word(self, bank: Bank, address: Word, also: list[tuple[int, tuple[bool, int]]]) -> list[int]:
        assert bank.side is not None
        place = 2 * worth(address) + bank.side
        fits = all(constant and ask == there for ask, (constant, there) in also) and place < len(self.words)
        return number(self.words[place] if fits else 0, 8)


def test_words_of_two_banks() -> None:
    heads = TwoBanks(WORDS)
    for address, word in enumerate(WORDS[:4]):
        assert worth(heads.read("ram", number(address, 3), 1)) == word
        pair = worth(heads.read("ram", number(address, 3), 2))
        assert [pair & 255, pair >> 8] == WORDS[address : address + 2]


@pytest.mark.parametrize("address", range(6))
def test_writes_to_two_banks(address: int) -> None:
    """Two words in a row: each bank carries on its own, with its own address, where anything changes in it
    and it has that many words."""
    heads = TwoBanks(WORDS)
    for changes in ((0, 0), (3, 0), (0, 5), (129, 64)):
        old = [17, 34]
        port = Write("ram", number(address, 3), number(old[0] | old[1] << 8, 16),
                     number(changes[0] | changes[1] << 8, 16))  # fmt: skip
        found = {name: worth(word) for name, word in heads._written(port).items()}
        for side, name in enumerate(("ram even", "ram odd")):
            place = address + ((address ^ side) & 1)
            which = place - address
            assert found[f"{name} write on"] == (changes[which] > 0 and place // 2 < 3)
            assert found[f"{name} write at"] == place // 2
            assert found[f"{name} write"] == old[which] ^ changes[which]


def test_answers_must_be_there() -> None:
    asked = frozenset({(1, (False, 3))})
    for answers, places in (({5: 2}, [5]), ({None: 1}, [5]), ({}, [])):
        heads: Any = SimpleNamespace(answers={(True, asked): answers})
        with pytest.raises(CheckError, match="no head asks for a word"):
            Heads._found(heads, True, list(asked), places)
    heads = SimpleNamespace(answers={(True, asked): {None: 4, 5: 2, 6: 8}})
    assert Heads._found(heads, True, list(asked), [6, 5]) == (4, [8, 2])
    with pytest.raises(CheckError, match="no head asks for a word"):
        Heads._found(heads, False, list(asked), [6])
