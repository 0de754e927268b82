"""Is a transformer of gates and heads this machine with random access? Its gates are the machine's formulas.

What is carried from step to step are the registers and, of every bank of memory, the write of the step
before: whether there was one, where, and the word. So each step answers for one write of a bank, and all
words of it are found again: the latest step that answers for an address has its word, else the token of the
input that names bank and address, else it is 0. A head that fits nowhere gives zeros, so that

    word = what was written, OR what was given where nothing was written.

A memory of which two words in a row are read is kept as two banks, its even and its odd words. Of the words
at a and a + 1 the even one is number (a + 1) / 2 of its bank and the odd one number a / 2, rounded down; a
single word is asked for in both, with its lowest bit compared to the side, so that the other gives zeros.

So the answers of heads are free bits once it is shown what they ask for, and everything else is a formula.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tapegrad_check.core.nodes import FALSE, TRUE, Likely, Nodes
from tapegrad_check.folder import OWN_TABLE, Checked, NotProved, require
from tapegrad_check.formulas.words import Word, either, less, number, padded, where
from tapegrad_check.instructions import Formulas, formulas, proved
from tapegrad_check.instructions.likely import likely
from tapegrad_check.instructions.ports import Layout, Write, halves
from tapegrad_check.sources import Model, Program, machine_of
from tapegrad_check.sources.circuits import GATES, arrays_of_lists

if TYPE_CHECKING:
    from tapegrad_check.targets.attention import Walk

Asked = tuple[bool, frozenset[tuple[int, tuple[bool, int]]]]
"""Of a head: whether it looks at steps, and what must be equal: a literal here, and there a coordinate, or a
constant."""


@dataclass(frozen=True)
class Bank:
    """A memory, or one side of it."""

    memory: str
    side: int | None
    number: int
    words: int
    width: int
    address: int
    written: bool

    def carried(self) -> dict[str, int]:
        """The groups of coordinates that a write takes, and their sizes."""
        name = self.memory if self.side is None else f"{self.memory} {('even', 'odd')[self.side]}"
        return {f"{name} write on": 1, f"{name} write at": self.address, f"{name} write": self.width}


def check(
    config: dict[str, Any],
    net: "Walk",
    groups: dict[str, list[int]],
    ends: list[int],
    steps: int,
    source: Model | None,
) -> Checked:
    """What holds of the net as a machine with random access."""
    sizes = _machine(config["machine"])
    machine = Program(**sizes, image=b"", entry=0, symbols={})
    if source is not None:
        require(isinstance(source, Program), "a machine with random access runs programs")
        assert isinstance(source, Program)
        require(_same(machine, source), "the machine is not that of the program")
        machine = source
    layout = Layout.of(machine, sizes["input"], sizes["output"])
    heads = Heads(layout, net, groups)
    require(config["banks"] == [vars(bank) for bank in heads.banks], "the banks are not the memories")
    require(sorted(ends) == groups["trap"], "the end is not where the program stops")
    try:
        what = f"what is handed on is not what a step of {machine.kind} makes of it"
        heads.check_step(formulas(machine), what, heads.likely())
        statements = proved(machine, layout)
    except NotProved as reason:
        return Checked([f"the instructions were not checked: {reason}"], OWN_TABLE)
    statements += [
        f"for all that registers hold and heads find, a step is one step of {machine.kind} with "
        f"{machine.ram:,} bytes of memory; the program and its input are the tokens",
        f"{len(heads.banks)} banks hold its memories: every head asks for the word that the step reads, and "
        "every write is carried on to where it is looked for",
    ]
    return Checked(statements)


def _machine(data: Any) -> dict[str, Any]:
    """The machine that the net names; the gates of one that the checker does not know are lists."""
    require(isinstance(data, dict), "the net has no machine")
    lists = data.get("arrays", {})
    own = {name: entry for name, entry in data.items() if name != "arrays"}
    return machine_of(own, arrays_of_lists(lists, GATES) if lists else {})


def _same(machine: Program, source: Program) -> bool:
    sizes = [(own.kind, own.ram, own.width) for own in (machine, source)]
    sums = [own.instruction and own.instruction.digest for own in (machine, source)]
    return sizes[0] == sizes[1] and sums[0] == sums[1]


class Heads:
    """A machine with the coordinates of its net."""

    def __init__(self, layout: Layout, net: "Walk", groups: Mapping[str, list[int]]) -> None:
        self.layout, self.net, self.groups = layout, net, groups
        self.banks = _banks(layout)
        sizes = dict(layout.registers)
        for bank in self.banks:
            sizes |= bank.carried() if bank.written else {}
        for group, size in sizes.items():
            require(len(groups.get(group, [])) == size, f"{group} has another size")
        carried = sorted(place for group in sizes for place in groups[group])
        require(carried == sorted(net.next), "something else is handed on than the machine needs")
        self.first_address = max(1, (len(self.banks) - 1).bit_length())
        self.first_word = self.first_address + max(bank.address for bank in self.banks)
        self.n = Nodes((1 << 18) + 8 * len(net.tables))
        self.literals: dict[int, int] = {}
        self.answers: dict[Asked, dict[int | None, int]] = {}
        """What a head finds in each coordinate of the place; under None, that there is one."""
        self._follow()

    def _follow(self) -> None:
        """All gates as formulas of what is carried and of what heads find. Heads that ask for the same find
        the same."""
        known, net = self.literals, self.net
        given = [*net.next, *net.time]
        known |= zip(given, self.n.variables(len(given)), strict=True)
        known |= zip(net.digits, self.n.variables(len(net.digits)), strict=True)
        looks = {row: look for look in net.looks for row in (*look.copies, *look.found)}
        for place, (inputs, table) in net.tables.items():
            for own in inputs:
                if own not in known and own in looks:
                    self._answer(looks[own])
            require(all(own in known for own in inputs), "a gate reads what is not known there")
            known[place] = _gate(self.n, [known[own] for own in inputs], table)

    def _answer(self, look: Any) -> None:
        pairs = set()
        for (ask, constant), (answer, there) in look.compared:
            here = self.literals[ask] if ask is not None else (FALSE, TRUE)[constant]
            pairs.add((here, (answer is None, there if answer is None else answer)))
        found = self.answers.setdefault((look.own_steps, frozenset(pairs)), {})
        for row, source in (*look.copies.items(), *((row, None) for row in look.found)):
            if source not in found:
                (found[source],) = self.n.variables(1)
            self.literals[row] = found[source]

    def read(self, memory: str, address: Word, span: int) -> list[int]:
        """What a port of the machine finds."""
        n, banks = self.n, [bank for bank in self.banks if bank.memory == memory]
        if len(banks) == 1:
            return self._word(banks[0], address, [])
        if span == 1:
            half = [*address[1:], FALSE]
            even, odd = (
                self._word(bank, half, [(address[0], (True, side))]) for side, bank in enumerate(banks)
            )
            return [n.or_(x, y) for x, y in zip(even, odd, strict=True)]
        even, odd = (self._word(bank, at, []) for bank, at in zip(banks, halves(n, address), strict=True))
        return [*either(n, address[0], odd, even), *either(n, address[0], even, odd)]

    def _word(self, bank: Bank, address: Word, also: list[tuple[int, tuple[bool, int]]]) -> list[int]:
        """The word at an address of a bank. Tokens are the number of a bank, an address and a word."""
        asks = padded(address, bank.address)
        here = zip(asks, ((False, self.first_address + bit) for bit in range(bank.address)), strict=True)
        named = [((FALSE, TRUE)[bank.number >> bit & 1], (False, bit)) for bit in range(self.first_address)]
        token = range(self.first_word, self.first_word + bank.width)
        _, given = self._found(False, [*here, *named, *also], token)
        if not bank.written:
            return given
        on, at, word = (self.groups[group] for group in bank.carried())
        there = zip(asks, ((False, place) for place in at), strict=True)
        found, written = self._found(True, [*there, (TRUE, (False, on[0])), *also], word)
        n = self.n
        return [n.or_(own, n.and_(found ^ 1, first)) for own, first in zip(written, given, strict=True)]

    def _found(
        self, own_steps: bool, pairs: Sequence[tuple[int, tuple[bool, int]]], places: Sequence[int]
    ) -> tuple[int, list[int]]:
        answer = self.answers.get((own_steps, frozenset(pairs)), {})
        complete = None in answer and all(place in answer for place in places)
        require(complete, "no head asks for a word that the machine reads")
        return answer[None], [answer[place] for place in places]

    @property
    def registers(self) -> dict[str, list[int]]:
        """What registers hold before a step."""
        return {name: [self.literals[place] for place in self.groups[name]] for name in self.layout.registers}

    def check_step(self, step: Formulas, what: str, likely: Likely | None = None) -> None:
        """What is handed on is what the machine's formulas say."""
        registers = self.registers
        effect = step(self.n, self.layout, registers, self.read)
        wanted = {name: effect.registers.get(name, old) for name, old in registers.items()}
        for port in effect.writes:
            wanted |= self._written(port)
        names = [f"{group}[{bit}]" for group, word in wanted.items() for bit in range(len(word))]
        found = [self.literals[self.net.next[place]] for group in wanted for place in self.groups[group]]
        self.n.require_same(found, [bit for word in wanted.values() for bit in word], what, names, likely)

    def likely(self) -> Likely:
        """States that a program could be in."""
        held = [(name, 0, word) for name, word in self.registers.items()]
        return likely(self.layout, [*held, *self._first()])

    def _first(self) -> Iterator[tuple[str, int, list[int]]]:
        """What heads may find before anything is written: words of the input, and nothing in the odd bank."""
        for (own_steps, pairs), found in self.answers.items():
            word = [found[place] for place in sorted(place for place in found if place is not None)]
            odd = any(is_constant and there for _, (is_constant, there) in pairs)
            if own_steps or odd:
                yield "nothing", 0, [*word, *([found[None]] if None in found else [])]
                continue
            asked = {there: ask for ask, (_, there) in pairs}
            bank = sum((asked.get(bit) == TRUE) << bit for bit in range(self.first_address))
            place = sum((asked.get(self.first_address + bit) == TRUE) << bit for bit in range(5))
            yield self.banks[bank % len(self.banks)].memory, place, word

    def _written(self, port: Write) -> dict[str, Word]:
        """What every bank of a memory carries on of a write; beyond its end nothing is written."""
        n, banks = self.n, [bank for bank in self.banks if bank.memory == port.memory]
        parts = [(port.address, port.old, port.change)]
        if len(banks) == 2:
            odd, width = port.address[0], banks[0].width
            halves_of = [(word[:width], word[width:]) for word in (port.old, port.change)]
            even_words = [either(n, odd, high, low) for low, high in halves_of]
            odd_words = [either(n, odd, low, high) for low, high in halves_of]
            at = halves(n, port.address)
            parts = [(at[0], *even_words), (at[1], *odd_words)]
        wanted: dict[str, Word] = {}
        for bank, (address, old, change) in zip(banks, parts, strict=True):
            on, at = n.any_of(change), padded(address, bank.address)
            if bank.words < 1 << bank.address:
                width = max(bank.address, bank.words.bit_length())
                on = n.and_(on, less(n, padded(at, width), number(bank.words, width)))
            new = [n.xor(x, y) for x, y in zip(old, change, strict=True)]
            wanted |= zip(bank.carried(), ([on], at, new), strict=True)
        return wanted


def _banks(layout: Layout) -> list[Bank]:
    """Every memory as one bank, or two where two words in a row are read."""
    banks: list[Bank] = []
    for memory, (width, words) in layout.memories.items():
        for side in (0, 1) if memory in layout.pairs else (None,):
            own = words if side is None else (words + 1 - side) // 2
            address, written = layout.addresses[memory], memory not in layout.read_only
            banks.append(Bank(memory, side, len(banks), own, width, address, written))
    return banks


def _gate(n: Nodes, inputs: list[int], table: int) -> int:
    """The gate that is bit i of its table where its inputs are the bits of i."""
    if len(inputs) > 2:
        rows = 1 << len(inputs) - 1
        low, high = (_gate(n, inputs[:-1], table >> at & (1 << rows) - 1) for at in (0, rows))
        return where(n, inputs[-1], high, low)
    b, a = (*inputs, FALSE, FALSE)[:2]
    rows = 1 << len(inputs)
    return n.gate(sum((table >> (row & rows - 1) & 1) << row for row in range(4)), a, b)
