"""The page of RV32 records is RV32IM: a proof by cases, one for each instruction of `rv32`, and some for the
words that are none.

A text tells of a state: pc is `next` of the last record; `copied` is its `s4` if its outcome is `more`, else
0; registers, memory and input are what heads find (see `rv32_records`). In each case the fixed bits of the
instruction are constants, and everything else that is read is free. The record that follows is worked out as
formulas, token by token. It says that the program stops, by its outcome; or else that pc becomes `next`, that
the register `rd` becomes `result`, that the bytes with a mark go to the addresses from `sum` on, that a byte
is put out or taken from the input. All that must be what `rv32.effect` says. So after each record, or the
last of several rounds, a text tells of the next state; and that is again one with pc a multiple of 4, and an
outcome of `go` or `more`.

Shifts are proved for each of the 32 distances; system calls for the low bits of a7 and a0, and where a byte
is moved, for all decisions, one after the other.

**Multiplication and division.** Rounds 0, 1, 34 and 35 are worked out like other records, and rounds 2 to 33
for any high word H and low word L. What becomes of these is proved to be

    S = H + (the first word if L is odd, else 0), of 33 bits; H = S / 2; L = L / 2, the lowest bit of S on top
    or a step of `words.divide`: 2 H and the highest bit of L, less the divisor where it fits

Before round 2, H is 0, and L is the second word, or the dividend's absolute value. So what there is after
round 33 is 32 such steps, and `rv32_rounds` proves that these make the product or the quotient.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from types import MappingProxyType

from tapegrad_check.core.nodes import FALSE, TRUE, Nodes
from tapegrad_check.folder import require
from tapegrad_check.formulas.words import (
    Word,
    above,
    add,
    chosen,
    differing,
    either,
    equal,
    number,
    only,
    padded,
)
from tapegrad_check.in_tokens.page_formulas import Formulas, Found, Record, Tokens
from tapegrad_check.in_tokens.pages import DIGIT_BIT, MARK_BIT
from tapegrad_check.in_tokens.rv32_records import BYTE, IMAGE, LAST_SET, Rv32Page
from tapegrad_check.in_tokens.rv32_rounds import (
    STEPS,
    WIDTH,
    digits_of,
    division_step,
    product_of_rounds,
    product_step,
    quotient_of_rounds,
    word_of,
)
from tapegrad_check.in_tokens.rv32_tokens import (
    ACCESS,
    CALLED,
    ENDS,
    FILE,
    GO,
    GOES,
    LAST_ROUND,
    MORE,
    MOVES,
    OPS,
    PUT_BIT,
    REGISTER_BIT,
    ROUND,
    SIGNS,
    STEP,
    STOPS,
)
from tapegrad_check.instructions import cases
from tapegrad_check.instructions.ports import Layout
from tapegrad_check.instructions.rv32 import Fixed, Hart, Outcome, Rule, effect, placed, turned

BRANCHES, ROUNDS = [op.name for op in OPS if op.branches], [op.name for op in OPS if op.rounds]
SHIFTS, SIGNED = ("sll", "srl", "sra"), ("mulh", "mulhsu", "div", "rem")
MOST_NODES = 1 << 18
FIRST_STEP, ASTRAY = 2, 12


@cache
def prove(ram: int, counted: int) -> int:
    """Every case, for a machine with these sizes; gives their number."""
    page = Rv32Page(ram, counted)
    formulas = Formulas(page, WIDTH)
    every = list(cases.cases())
    require(sum(1 << 32 - len(fixed) for _, fixed, _ in every) == 1 << 32, "the cases leave something out")
    count = 0
    for name, fixed, rule in every:
        count += prove_case(formulas, name, fixed, rule)
    return count


def prove_case(formulas: Formulas, name: str, fixed: Fixed, rule: Rule) -> int:
    """One instruction, in parts; gives their number."""
    parts = list(_parts(name))
    for words in parts:
        code = dict(fixed)
        if name.endswith("i") and words:
            code |= {20 + bit: value for bit, value in words[1].items()}
        _Case(formulas, name, code, words, rule).prove()
    return len(parts)


def _parts(name: str) -> Iterator[Sequence[Fixed]]:
    """Bits of the words read from registers that are known in parts of a case: distances of shifts, signs
    where these count in rounds, and the low bits of a7 and a0. An immediate distance is in the
    instruction."""
    if name.removesuffix("i") in SHIFTS:
        for distance in range(32):
            yield {}, _bits(distance, 5)
    elif name in SIGNED:
        for first, second in product((0, 1), repeat=2):
            yield {31: first}, {31: second}
    elif name == "ecall":
        for call in (63, 64):
            for file in range(16):
                yield {}, {}, _bits(file, 4), _bits(call, 8)
        yield from (({}, {}, {}, _bits(call, 8)) for call in (93, 94))
        for call in cases.others([_bits(call, 8) for call in (63, 64, 93, 94)]):
            yield {}, {}, {}, call
    else:
        yield ()


def _bits(value: int, width: int) -> Fixed:
    return {bit: value >> bit & 1 for bit in range(width)}


class _Case:
    """One case: what is read, and what is left to prove."""

    def __init__(
        self, formulas: Formulas, name: str, fixed: Fixed, words: Sequence[Fixed], rule: Rule
    ) -> None:
        self.formulas, self.name, self.rule = formulas, name, rule
        page = formulas.page
        assert isinstance(page, Rv32Page)
        self.page, self.n = page, Nodes(MOST_NODES)
        n = self.n
        self.code = [fixed.get(bit, free) for bit, free in enumerate(n.variables(32))]
        self.x = [n.variables(32) for _ in range(4)]
        """What the four rows find that are read from registers: a, b0, s8 and s16."""
        for word, known in zip(self.x, words, strict=False):
            word[:] = [known.get(bit, free) for bit, free in enumerate(word)]
        self.memory, self.byte, self.there = n.variables(32), n.variables(8), n.variables(1)[0]
        self.other, self.oldest = n.variables(1)[0], n.variables(8)
        self.more = n.variables(1)[0]
        self.pc = [FALSE, FALSE, *n.variables(30)]
        self.taken = n.variables(4 * page.counted)
        self.asked: list[tuple[int, Word]] = []
        self.addresses: list[tuple[int, Word]] = []
        self.found: list[int] = []
        self.wanted: list[int] = []
        self.names: list[str] = []

    def prove(self) -> None:
        """The record, or the last of its rounds, does what the definition says."""
        n, last = self.n, self._before()
        copied = only(n, self.more, word_of(last, "s4"))
        registers = {"pc": self.pc, "copied": copied, "taken": self.taken, "written": n.variables(2)}
        layout = Layout.sized("rv32im", 32, self.page.ram, 1, 1)
        hart = Hart(n, layout, self.code, registers, self._x, self._loads, [*self.byte, self.there])
        does = self.rule(hart)
        decisions, given = self._given(does)
        record = self._tell(last, given)
        if self.name in ROUNDS:
            record = self._rounds(record)
        what = f"a record is not {self.name}"
        for slot, told in record.instead.items():
            assumed = decisions if slot in ("ends", "access") else ()
            self._settle(does.accesses, assumed, [*told, *given[slot]], f"{what}, at {slot}")
        self._compare(record, registers, effect(hart, does, registers, self.oldest), hart.rd)
        decisions = [*decisions, *self._later(does)]
        self._settle(does.accesses, decisions, [*self.found, *self.wanted], what)

    def _settle(self, matters: int, decisions: Sequence[int], both: Sequence[int], what: str) -> None:
        """All that is left to prove, for both that each of these is so and that it is not, as long as that
        matters."""
        decisions = [literal for literal in decisions if literal not in (FALSE, TRUE)]
        if decisions and matters != FALSE:
            first, *rest = decisions
            for value in (FALSE, TRUE):
                still, *assumed = self.n.assuming(first, value, [matters, *rest, *both])
                self._settle(still, assumed[: len(rest)], assumed[len(rest) :], what)
        else:
            half = len(both) // 2
            names = self.names if half == len(self.names) else ()
            self.n.require_same(both[:half], both[half:], what, names)

    def _later(self, does: Outcome) -> list[int]:
        """Of a system call, whether its address is outside, and whether it goes on."""
        if self.name != "ecall":
            return []
        assert does.address is not None
        return [above(self.n, does.address, self.page.ram - does.size), does.waits]

    def _given(self, does: Outcome) -> tuple[Sequence[int], Tokens]:
        """Some tokens in terms of the definition: whether a branch jumps; which call it is, of which file,
        and whether a byte is moved. And what they depend on."""
        n = self.n
        if self.name in BRANCHES:
            return [does.jumps], {"goes": [does.jumps, *number(GOES >> 1, WIDTH - 1)]}
        if self.name != "ecall":
            return [], {}
        _, count, a0, a7 = self.x
        read, write, *exits = (equal(n, a7, which) for which in (63, 64, 93, 94))
        ends, files = n.any_of(exits), [equal(n, a0, which) for which in (0, 1, 2)]
        unknown = n.any_of([read, write, ends]) ^ 1
        good = n.or_(n.and_(read, files[0]), n.and_(write, n.or_(files[1], files[2])))
        moves = [n.and_(does.accesses, way) for way in (does.takes, does.puts)]
        given = {
            "call": [n.or_(write, unknown), n.or_(read, write), ends, *number(CALLED >> 3, WIDTH - 3)],
            "file": [good, *number(FILE >> 1, WIDTH - 1)],
            "moves": [*moves, *number(MOVES >> 2, WIDTH - 2)],
            "ends": [does.waits ^ 1, *number(ENDS >> 1, WIDTH - 1)],
            "access": [n.and_(does.accesses, self._later(does)[0]), *number(ACCESS >> 1, WIDTH - 1)],
        }
        unsure = [read, write, *exits, *files, n.any_of(count), self.there]
        return unsure, given

    def same(self, what: str, found: Word, wanted: Word) -> None:
        self.found += found
        self.wanted += wanted
        self.names += [what] * len(found)

    # What is read

    def _before(self) -> dict[str, Word]:
        """The last record of the step before: pc is there, and how many bytes were taken and copied; whatever
        else it says."""
        last: dict[str, Word] = {slot: self.n.variables(WIDTH) for slot in self.page.slots}
        last |= digits_of("next", self.pc) | digits_of("taken", self.taken)
        last["outcome"] = either(self.n, self.more, number(MORE, WIDTH), number(GO, WIDTH))
        return last

    def _tell(self, last: Tokens, given: Tokens = MappingProxyType({})) -> Record:
        record = self.formulas.tell(self.n, last, [self._finds(True), self._finds(False)], given)
        self.same("what can be", record.found, record.wanted)
        require(record.tokens["kind"] == number(STEP, WIDTH), "no record follows")
        require(record.word("pc") == list(self.pc) and record.word("ins") == self.code, "pc is elsewhere")
        low = [[*number(more, 2), *self.pc[2:4]] for more in (1, 2, 3)]
        require([record.tokens[f"pc+{more}"][:4] for more in (1, 2, 3)] == low, "pc is elsewhere")
        return record

    def _finds(self, written: bool) -> Found:
        """What heads find, where digits of memory were written in a record, or stand in the prompt."""

        def found(head: str, slot: str) -> Word:
            name, _, digit = slot.partition(" ")
            bits = slice(4 * int(digit or 0), 4 * int(digit or 0) + 4)
            if head == LAST_SET:
                return self.x[("a", "b0", "s8", "s16").index(name)][bits]
            if head == BYTE:
                token = [*(padded(self.byte, 32)[bits]), *[FALSE] * 4]
                token[MARK_BIT] = self.there
                return token
            stored = (self.code if name == "ins" else self.memory)[bits]
            if written:
                return [self.other] * 4 if head == IMAGE else [*stored, *number(1 << DIGIT_BIT - 4, 4)]
            return stored if head == IMAGE else [FALSE] * 8

        return found

    # What a record does

    def _compare(
        self, record: Record, registers: Mapping[str, Word], wanted: Mapping[str, Word], rd: Word
    ) -> None:
        n, tokens, outcome, copied = self.n, record.tokens, record.tokens["outcome"], registers["copied"]
        self._compare_reads(record)
        stops = [(equal(n, outcome, said), number(trap, 3)) for said, trap in STOPS.items()]
        stopped, goes, more = (
            n.any_of([flag for flag, _ in stops]),
            equal(n, outcome, GO),
            equal(n, outcome, MORE),
        )
        self.same("the outcome", [n.or_(stopped, n.or_(goes, more))], [TRUE])
        runs = stopped ^ 1
        self.same("the trap", chosen(n, *stops), wanted["trap"])
        pc = either(n, runs, record.word("next"), self.pc)
        self.same("pc", pc, wanted["pc"])
        self.same("pc", pc[:2], [FALSE, FALSE])
        self.same("copied", either(n, runs, only(n, more, record.word("s4")), copied), wanted["copied"])
        self._compare_taken(record, runs, wanted["taken"])
        puts = n.and_(runs, tokens["put"][PUT_BIT])
        self.same("what is put out", add(n, registers["written"], padded([puts], 2)), wanted["written"])
        self.same(
            "what is put out", only(n, puts, differing(n, self.oldest, tokens["put"][:8])), wanted["output"]
        )
        sets = n.and_(runs, tokens["rd"][REGISTER_BIT])
        self.same("the register", only(n, sets, tokens["rd"][:5]), only(n, sets, rd))
        self.same("the result", only(n, sets, differing(n, self.x[2], record.word("result"))), wanted["x"])
        self.same("memory", self._stored(record, runs), wanted["ram"])

    def _compare_taken(self, record: Record, runs: int, wanted: Word) -> None:
        """One more byte is taken where the record says so; unless it stops, its digits have that number."""
        n, takes, width = self.n, record.tokens["moves"][0], len(self.taken)
        self.same("taken", add(n, self.taken, padded([n.and_(runs, takes)], width)), wanted)
        counted = add(n, self.taken, padded([takes], width))
        self.same("taken", record.word("taken", self.page.counted), counted)

    def _x(self, which: int, register: Word) -> list[int]:
        """A register that the definition reads."""
        self.asked.append((which, register))
        return list(self.x[which])

    def _loads(self, accesses: int, address: Word) -> list[int]:
        """Four bytes of memory that it reads, if it does."""
        self.addresses.append((accesses, address))
        return list(self.memory)

    def _compare_reads(self, record: Record) -> None:
        """The registers and bytes are those that the record asks for. The register that is set is compared
        elsewhere, and a call reads it as well."""
        n, digits, total = self.n, self.page.address, record.word("sum")
        for which, register in self.asked:
            if which != 2 or self.name == "ecall":
                token = record.tokens[("r1", "r2", "rd", "r3")[which]]
                self.same("a register", token[:6], [*register, TRUE])
        for accesses, address in self.addresses:
            self.same("an address", only(n, accesses, total), only(n, accesses, address))
        for more in (1, 2, 3) if self.addresses else ():
            found = record.word(f"at+{more}", digits)
            self.same("an address", found, add(n, total, number(more, 32))[: 4 * digits])

    def _stored(self, record: Record, runs: int) -> list[int]:
        """The bits that change in the two words at the sum: those of bytes with marks."""
        n, tokens = self.n, record.tokens
        from_call = tokens["load 0"][MARK_BIT]
        self.same("a mark", [tokens["load 1"][MARK_BIT]], [from_call])
        change: list[int] = []
        for byte in range(4):
            low, high = (tokens[f"result {2 * byte + half}"] for half in (0, 1))
            marked = low[MARK_BIT]
            self.same("a mark", [high[MARK_BIT], n.and_(marked, from_call)], [marked, FALSE])
            old = self.memory[8 * byte : 8 * byte + 8]
            own = only(n, marked, differing(n, old, [*low[:4], *high[:4]]))
            if byte == 0:
                read = only(n, from_call, differing(n, old, record.word("load", 2)))
                own = [n.or_(x, y) for x, y in zip(own, read, strict=True)]
            change += own
        uses = n.any_of(tokens["moves"][:2]) if self.name == "ecall" else TRUE
        return placed(n, only(n, runs, change), only(n, uses, record.word("sum")[:2]))

    # Multiplication and division

    def _rounds(self, record: Record) -> Record:
        """The last round, after 35 others in which nothing else happens."""
        n, (a, b) = self.n, self.x[:2]
        divides = self.name.startswith(("div", "rem"))
        signed = self.name in ("div", "rem")
        self._is_round(record, 1)
        negative = [word[31] if signed else FALSE for word in (a, b)]
        dividend, divisor = (turned(n, flag, word) for flag, word in zip(negative, (a, b), strict=True))
        record = self._tell(record.tokens)
        self._is_round(record, FIRST_STEP)
        self.same("the high word", record.word("s16"), number(0, 32))
        self.same("the low word", record.word("s8"), dividend if divides else b)
        signs = record.tokens["signs"]
        self._signs(signs)
        high, low = n.variables(32), n.variables(32)
        for count in range(FIRST_STEP, FIRST_STEP + STEPS):
            last = dict(record.tokens) | digits_of("s16", high) | digits_of("s8", low)
            record = self._tell(last)
            self._is_round(record, count + 1)
            self.same("the signs", record.tokens["signs"], signs)
            after = division_step(n, high, low, b, negative[1]) if divides else product_step(n, high, low, a)
            self.same("a round", [*record.word("s16"), *record.word("s8")], after)
        if divides:
            low, high = quotient_of_rounds(n, dividend, b, divisor)
        else:
            both = product_of_rounds(n, a, b)
            high, low = both[32:], both[:32]
        record = self._tell(dict(record.tokens) | digits_of("s16", high) | digits_of("s8", low))
        self._is_round(record, LAST_ROUND)
        return self._tell(record.tokens)

    def _signs(self, token: Word) -> None:
        """As rounds remember them."""
        n, (a, b) = self.n, self.x[:2]
        self.same("the signs", token[:2], [a[31], b[31]])
        self.same("the signs", [token[2]], [n.any_of(b) ^ 1])
        require(token[3:] == number(SIGNS >> 3, WIDTH - 3), "signs are something else")

    def _is_round(self, record: Record, following: int) -> None:
        """Nothing is read, written or set, and the same instruction follows, with this number; unless pc is
        outside, which stops the program in the first round."""
        n, tokens = self.n, record.tokens
        astray = above(n, self.pc, self.page.ram - 4)
        self.same(
            "the outcome", tokens["outcome"], either(n, astray, number(ASTRAY, WIDTH), number(ROUND, WIDTH))
        )
        tokens["outcome"] = number(ROUND, WIDTH)
        require(record.word("next") == list(self.pc) and not tokens["rd"][REGISTER_BIT], "a round does more")
        marks = [tokens[f"{name} {place}"][MARK_BIT] for name in ("result", "load") for place in range(8)]
        require(not any(marks) and not tokens["put"][PUT_BIT], "a round does more")
        require(record.word("taken", self.page.counted) == list(self.taken), "a round does more")
        require(record.word("s4", 2) == number(following, 8), "a round has another number")
