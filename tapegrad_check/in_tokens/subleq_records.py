"""SUBLEQ in tokens, in the checker's own words: what every token of a record says.

    kind  pc  pc+1  pc+2  a  from  b  to  c  x  y  z  out  jump  taken  next  outcome

Rows are words in hexadecimal, the lowest digit first. By induction over the tokens: if pc is the program's,
and the latest z of an address is what memory holds there (or else the prompt, or 0), then a, b, c, x and y
are the words that the instruction reads, since each of their digits is found by all digits of its address; z
is y - x with borrows, or the byte that was read; and `next` is c where z is 0 or negative, otherwise pc + 3.
A mark on a digit of a and b says that all digits before it are f, a plus that they are above those of the
last address; on a digit of z a mark says that one before it is not 0. So the last digit tells whether an
address is -1 or outside, and whether z is 0. `taken` counts bytes. After an outcome other than `go` the text
ends.
"""

from collections.abc import Mapping, Sequence

from tapegrad_check.in_tokens.pages import (
    DIGIT,
    DIGIT_BIT,
    MARK,
    MARK_BIT,
    PLUS,
    PLUS_BIT,
    VALUE,
    Area,
    Bits,
    Rule,
    at,
    carried,
    digits_for,
    from_memory,
    numbered,
    over,
    recalled,
    row,
)
from tapegrad_check.in_tokens.token_nets import Side, Source

END, DATA, INPUT, STEP = 0, 2, 3, 5
GREATER, LEQ, GO, ENDS, ASTRAY, BEYOND, QUIET = 6, 7, 13, 14, 15, 17, 18
FROM, TO_MEMORY, TO = 8, 48, 32
PUT, TOKENS = 256, 512
STORE, IMAGE, BYTE = "last write", "word of the prompt", "byte of the input"
INSIDE, DEVICE, NOWHERE = 0, 1, 2
"""What the bits 1 and 2 of `from` and `to` say."""


class SubleqPage:
    """For words of so many bits, so many words of memory, and digits that count the input."""

    heads: Sequence[str] = (STORE, IMAGE, BYTE)

    def __init__(self, width: int, words: int, counted: int) -> None:
        self.word, self.words, self.counted = width // 4, words, counted
        self.address = digits_for(words)
        word, address = self.word, self.address
        self.slots: Sequence[str] = (
            *(
                "kind",
                *row("pc", word),
                *row("pc+1", address),
                *row("pc+2", address),
                *row("a", word),
                "from",
            ),
            *(
                *row("b", word),
                "to",
                *row("c", word),
                *row("x", word),
                *row("y", word),
                *row("z", word),
                "out",
            ),
            *("jump", *row("taken", counted), *row("next", word), "outcome"),
        )
        sizes = (word, 4 * address), (2, 4 * counted)
        count = numbered(len(self.slots), sizes)
        self.data, self.input = (Area(len(self.slots), *size, count) for size in sizes)

    def found(self, head: str, slot: str) -> Mapping[int, frozenset[tuple[Side, Side]]]:
        """Where digits of memory and input are."""
        name, _, digit = slot.partition(" ")
        if head == BYTE:
            taken = [self._bit(f"taken {bit // 4}", bit % 4, "last") for bit in range(4 * self.counted)]
            return self.input.found(taken, int(digit) % 2, INPUT)
        asked = {"a": "pc", "b": "pc+1", "c": "pc+2", "x": "a", "y": "b"}[name]
        bits = range(4 * self.address)
        address = [self._bit(f"{asked} {bit // 4}", bit % 4) for bit in bits]
        if head == IMAGE:
            return self.data.found(address, int(digit), DATA)
        written = [self._bit(f"b {bit // 4}", bit % 4) for bit in bits]
        equal = {*zip(address, written, strict=True), (1, self._bit("to", 4))}
        return {self.slots.index(f"z {digit}"): frozenset(equal)}

    def _bit(self, slot: str, bit: int, where: str = "this") -> Source:
        return Source(where, self.slots.index(slot), bit)

    def rules(self, slot: str) -> Sequence[Rule]:
        """What the token of a slot says."""
        name, _, digit = slot.partition(" ")
        place, last = int(digit or 0), self.word - 1
        devices = at("from", 1, 2), at("to", 1, 2)
        if slot == "kind":
            return [
                Rule((at("outcome", 0, 1, 2, 3, 4, last=True),), lambda said: STEP if said == GO else END)
            ]
        if slot in ("from", "to"):
            return [self._kind_of_address(slot)]
        if slot == "out":
            return [Rule((*devices, at("x 0"), at("x 1")), _out)]
        if slot == "jump":
            return [Rule((*devices, at(f"z {last}", *VALUE, MARK_BIT)), _jump)]
        if slot == "outcome":
            seen = at(f"pc {last}", *VALUE, PLUS_BIT), *devices, at("jump", 0), at(f"c {last}", 3)
            return [Rule(seen, self._outcome)]
        if name == "pc":
            copied = Rule((at(f"next {place}", last=True),), lambda digit: DIGIT + digit)
            return [copied, *self._compared("pc", place, self.words - 3)]
        if name in ("pc+1", "pc+2"):
            return [self._plus("pc" if name == "pc+1" else "pc+1", name, place)]
        if name == "taken":
            carry = at("x 0", PLUS_BIT) if place == 0 else at(f"taken {place - 1}", PLUS_BIT)
            return [Rule((at(slot, last=True), carry), lambda digit, carry: carried(digit + carry))]
        if name == "next":
            return [self._next(place)]
        if name == "z":
            return list(self._result(place))
        if name == "x":
            return list(self._moved(place))
        memory = from_memory(STORE, IMAGE)
        if name in ("a", "b"):
            memory += self._compared(name, place, self.words - 1)
            memory += _all_f(name, place)
        return memory

    def _compared(self, name: str, place: int, limit: int) -> list[Rule]:
        """A plus where the digits before this one are above those of a limit."""
        if place == 0 or limit < 0:
            return []
        own = limit >> 4 * (place - 1) & 15
        return [
            Rule((at(f"{name} {place - 1}", *VALUE, PLUS_BIT),), lambda seen: PLUS if over(seen, own) else 0)
        ]

    def _kind_of_address(self, slot: str) -> Rule:
        name, last = ("a" if slot == "from" else "b"), self.word - 1
        limit = self.words - 1 >> 4 * last & 15

        def kind(seen: int) -> int:
            place = NOWHERE if over(seen, limit) else INSIDE
            if seen & MARK and seen % 16 == 15:
                place = DEVICE
            if slot == "from":
                return FROM + 2 * place
            return TO_MEMORY if place == INSIDE else TO + 2 * place

        return Rule((at(f"{name} {last}", *VALUE, PLUS_BIT, MARK_BIT),), kind)

    def _plus(self, of: str, name: str, place: int) -> Rule:
        if place == 0:
            return Rule((at(f"{of} 0"),), lambda digit: carried(digit + 1))
        return Rule(
            (at(f"{of} {place}"), at(f"{name} {place - 1}", PLUS_BIT)), lambda digit, c: carried(digit + c)
        )

    def _moved(self, place: int) -> list[Rule]:
        """A digit of x. A plus on the first says that a byte was read."""
        source, there = at("from", 1, 2), recalled(BYTE, MARK_BIT)
        rules = [
            Rule(
                (source, there, recalled(STORE, bit, DIGIT_BIT), recalled(IMAGE, bit), recalled(BYTE, bit)),
                _moving(bit, place < 2),
            )
            for bit in VALUE
        ]
        if place == 0:
            rules.append(
                Rule((source, there), lambda source, there: PLUS if source == DEVICE and there else 0)
            )
        return rules

    def _result(self, place: int) -> list[Rule]:
        """A digit of z, with a plus where it borrows."""
        inputs: list[Bits] = [at("from", 1, 2), at(f"x {place}"), at(f"y {place}")]
        if place:
            inputs.append(at(f"z {place - 1}", PLUS_BIT))

        def result(source: int, x: int, y: int, borrow: int = 0) -> int | None:
            if source == DEVICE:
                return DIGIT + x
            return DIGIT + (y - x - borrow) % 16 + (PLUS if y < x + borrow else 0)

        rules = [Rule(tuple(inputs), result)]
        if place:
            rules.append(Rule((at(f"z {place - 1}", *VALUE, MARK_BIT),), lambda seen: MARK if seen else 0))
        return rules

    def _next(self, place: int) -> Rule:
        inputs: list[Bits] = [at("jump", 0), at(f"c {place}"), at(f"pc {place}")]
        if place:
            inputs.append(at(f"next {place - 1}", PLUS_BIT))

        def following(jumps: int, target: int, digit: int, carry: int = 3) -> int:
            return DIGIT + target if jumps else carried(digit + carry)

        return Rule(tuple(inputs), following)

    def _outcome(self, seen: int, source: int, target: int, jumps: int, sign: int) -> int | None:
        limit = self.words - 3
        if limit < 0 or over(seen, limit >> 4 * (self.word - 1) & 15):
            return ASTRAY
        if NOWHERE in (source, target) or (source, target) == (DEVICE, DEVICE):
            return BEYOND
        return None if 3 in (source, target) else ENDS if jumps and sign else GO


def _all_f(name: str, place: int) -> list[Rule]:
    """A mark where all digits before this one are f."""
    if place == 0:
        return [Rule((), lambda: MARK)]
    return [Rule((at(f"{name} {place - 1}", *VALUE, MARK_BIT),), lambda seen: MARK if seen == 31 else 0)]


def _moving(bit: int, low: bool):  # a rule's function
    def moving(source: int, there: int, store: int, image: int, byte: int) -> int | None:
        base = DIGIT if bit == 0 else 0
        if source == INSIDE:
            return base + ((store % 2 if store > 1 else image) << bit)
        if source == DEVICE:
            return base + ((byte if low else 0) << bit if there else 1 << bit)
        return base if source == NOWHERE else None

    return moving


def _out(source: int, target: int, low: int, high: int) -> int | None:
    if 3 in (source, target):
        return None
    return PUT + 16 * high + low if (source, target) == (INSIDE, DEVICE) else QUIET


def _jump(source: int, target: int, seen: int) -> int | None:
    if 3 in (source, target):
        return None
    negative, zero = seen >> 3 & 1, seen == 0
    return LEQ if (source, target) == (INSIDE, INSIDE) and (negative or zero) else GREATER
