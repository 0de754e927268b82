"""Memory in a prompt: records that hold words or bytes in blocks, and the heads that find them there.

A block is a record: its kind, the digits of its number, then digits of words, one word after the other. So a
word's address is the number of its block and its place there, and a digit of it stands in a slot that follows
from the low bits of the address.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tapegrad.attention.cells import TOKEN
from tapegrad.attention.digits import BASE, DIGIT, NIBBLE, G, digits_of
from tapegrad.attention.program import Bit
from tapegrad.attention.tokens import BEGIN, TokenSide
from tapegrad.errors import Refused
from tapegrad.programs.model import ProgramState

ABOUT = """Digits are hexadecimal, the lowest first. A
record is one instruction. The program is not in the weights: it stands in the prompt, in records that begin
with `data`, then the number of a block and its digits; `input` records have the bytes to read, and `<start>`
tells where to begin. So this one checkpoint runs every program of its machine. What a program writes are the
words `put:`."""
KIND = "kind of the record"
"""The head that finds it."""


class ProgramStory(ABC):
    """What records tell of a program: the state in which the last one found it."""

    def __init__(self, first: ProgramState) -> None:
        self.state = first
        self.told: Sequence[int] | None = None
        """The last record, which shows in the next."""

    def read(self, record: Sequence[int]) -> bool:
        """The next record, or as much of it as there is; whether a step was reached."""
        ended = self.told is None or self.ends_step(self.told)
        if self.told is not None and ended:
            self.state = self.after(self.told)
        self.told = record
        return ended

    def configuration(self) -> ProgramState:
        """As the interpreter has it."""
        return self.state

    def ends_step(self, record: Sequence[int]) -> bool:
        """Whether this record is the last of its instruction."""
        return True

    @abstractmethod
    def after(self, record: Sequence[int]) -> ProgramState:
        """The state that such a record leads to."""


def block_head(place: int) -> str:
    """The name of the head that finds a digit of the block's number."""
    return f"block {place}"


def head_bit(head: str, bit: int) -> Bit:
    """What a head that gathers makes of a bit of a token's number."""
    return f"{head}: {TOKEN}[{bit}]"


@dataclass(frozen=True)
class Blocks:
    """Words of so many digits, in records of so many slots."""

    slots: int
    digits: int
    """Of a word: a power of two."""
    address: int
    """Bits of an address."""
    numbered: int
    """Digits of the number of a block: the same for all kinds of blocks of a program."""

    @classmethod
    def least_numbered(cls, slots: int, digits: int, address: int) -> int:
        """With how many digits blocks can be numbered: eight at most, as addresses have 28 bits at most."""
        return next(count for count in range(1, 9) if cls(slots, digits, address, count).fits)

    @property
    def fits(self) -> bool:
        """Whether all blocks have numbers."""
        return self.address - self.place <= NIBBLE * self.numbered

    @property
    def first(self) -> int:
        """The slot where words begin."""
        return 1 + self.numbered

    @property
    def place(self) -> int:
        """Bits of an address that tell the place in a block. A small memory does not fill one: words beyond
        its end would answer as well."""
        return min(self.address, ((self.slots - self.first) // self.digits).bit_length() - 1)

    @property
    def words(self) -> int:
        """Of a block."""
        return 1 << self.place

    @property
    def area(self) -> range:
        """The slots with words."""
        return range(self.first, self.first + self.words * self.digits)

    def compared(
        self, asked: Sequence[TokenSide], index: Sequence[TokenSide]
    ) -> list[tuple[TokenSide, TokenSide]]:
        """What a head compares which is asked for the bits of an address, and for the bits of the number of a
        digit in its word."""
        low = (self.digits - 1).bit_length()
        pairs: list[tuple[TokenSide, TokenSide]] = [
            (side, self._slots(bit)) for bit, side in enumerate((*index[:low], *asked[: self.place]))
        ]
        for bit, side in enumerate(asked[self.place :]):
            pairs.append((side, head_bit(block_head(bit // NIBBLE), bit % NIBBLE)))
        return [*pairs, (1, frozenset(self.area))]

    def _slots(self, bit: int) -> frozenset[int]:
        return frozenset(slot for slot in self.area if slot - self.first >> bit & 1)

    def records(self, kind: int, words: Mapping[int, Sequence[int]], filler: int) -> Iterator[list[int]]:
        """Blocks with the digits of words by address; those without any word are left out."""
        blocks: dict[int, list[int]] = {}
        for address, own in sorted(words.items()):
            number, place = divmod(address, self.words)
            if number not in blocks:
                head = [kind, *digits_of(number, self.numbered)]
                blocks[number] = [*head, *[filler] * (self.slots - len(head))]
            first = self.first + place * self.digits
            blocks[number][first : first + self.digits] = own
        yield from blocks.values()


def block_addresses(slots: Sequence[str], numbered: int, area: range) -> dict[str, dict[str, str]]:
    """The heads by which words of a prompt know their record's kind and number."""
    own = [slots[slot] for slot in area]
    looks = {KIND: dict.fromkeys(own, slots[0])}
    return looks | {block_head(place): dict.fromkeys(own, slots[1 + place]) for place in range(numbered)}


def digits_for(values: int) -> int:
    """Digits that so many values need."""
    count = 1
    while BASE**count < values:
        count += 1
    return count


def copies(head: str, *bits: int) -> tuple[tuple[Bit, Bit], ...]:
    """What a head that recalls copies: bits of the number of the token."""
    return tuple((f"{TOKEN}[{bit}]", head_bit(head, bit)) for bit in bits)


def of_kind(kind: int) -> list[tuple[TokenSide, TokenSide]]:
    """Compares the kind of the record with this one; all kinds have two bits, and nothing else has the second
    one alone."""
    return [(kind >> bit & 1, head_bit(KIND, bit)) for bit in (0, 1)]  # type: ignore[list-item]


def input_records(blocks: Blocks, kind: int, data: bytes) -> Iterator[list[int]]:
    """Bytes of input, each with a flag that says that it is there."""
    if len(data) >> blocks.address:
        raise Refused(
            f"an input of {len(data):,} bytes is given, and the net counts up to "
            f"{(1 << blocks.address) - 1:,}",
            advice="Give it less to read.",
        )
    return blocks.records(
        kind, {at: [digit + G for digit in digits_of(byte, 2)] for at, byte in enumerate(data)}, DIGIT
    )


def joined(records: Sequence[Sequence[int]], tokens: int) -> list[int]:
    """A prompt of these records, if it leaves room for one more."""
    numbers = [BEGIN, *(number for record in records for number in record)]
    needed = len(numbers) + len(records[-1])
    if needed > tokens:
        raise Refused(
            f"program and input take {len(numbers):,} tokens, and the net has a horizon of {tokens:,}",
            advice=f"Compile with more, as in tokens={2 * needed}.",
        )
    return numbers


def byte_word(byte: int) -> str:
    """A byte as people read it: a letter, or two digits."""
    return chr(byte) if 33 <= byte < 127 else f"\\{byte:02x}"
