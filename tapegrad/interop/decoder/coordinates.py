"""What each coordinate of the residual stream means, and what each head does."""

from dataclasses import dataclass
from functools import cached_property

from tapegrad.interop.decoder.vocabulary import MOVES, Vocabulary

Key = tuple[str | int, ...]

RULERS = ("here+", "here-", "wrote+", "wrote-")
"""The head's cell after a token, and the cell that the token wrote to: each as the digits of its positive and
of its negative part, of which one is 0."""


@dataclass(frozen=True)
class Coordinates:
    """The residual stream of the network for a vocabulary and a context length."""

    vocabulary: Vocabulary
    context: int

    @property
    def bits(self) -> int:
        """Digits of a token's index."""
        return (self.context - 1).bit_length()

    @property
    def width(self) -> int:
        """d_model."""
        return len(self._index)

    def at(self, *key: str | int) -> int:
        """`at("state", q)`, `at("here+", bit)`, `at("place")`, ..."""
        return self._index[key]

    def group(self, *names: str) -> list[int]:
        """All coordinates of these groups, in order."""
        return [number for name in names for key, number in self._index.items() if key[0] == name]

    @property
    def names(self) -> tuple[str, ...]:
        """Every coordinate by number, as `state[A]`."""
        return tuple(f"{group}[{rest[0]}]" if rest else str(group) for group, *rest in self._index)

    @cached_property
    def _index(self) -> dict[Key, int]:
        states, symbols = self.vocabulary.states, self.vocabulary.symbols
        keys: list[Key] = [("begin",), ("move",), *(("state", q) for q in states)]
        keys += [("symbol", a) for a in symbols]
        keys += [("sink",), ("index",), ("square",), *(("code", bit) for bit in range(self.bits))]
        keys += [("place",), *((ruler, bit) for ruler in RULERS for bit in range(self.bits))]
        keys += [("read", a) for a in symbols]
        keys += [("next state", q) for q in states] + [("next symbol", a) for a in symbols]
        keys += [*(("next move", move) for move in MOVES), ("halt",)]
        return {key: number for number, key in enumerate(keys)}


MEANING = {
    "begin": "token embedding: this is the first token",
    "move": "token embedding: -1, 0 or +1, where the head goes",
    "state": "token embedding: the state that the token enters; none for tokens that only write",
    "symbol": "token embedding: the symbol that the token writes (the first token: the blank)",
    "sink": "position embedding: ln(N - p), the score of the first token when moves are counted",
    "index": "position embedding: p",
    "square": "position embedding: p^2",
    "code": "position embedding: the binary digits of p, as -1 and +1",
    "place": "block 0: the head's cell after this token, the sum of all moves, up to rounding",
    "here+": "block 1: binary digits of the head's cell, 0 if that is negative, exact",
    "here-": "block 1: binary digits of minus the head's cell, 0 if that is negative, exact",
    "wrote+": "block 1: binary digits of the cell that this token wrote to, likewise",
    "wrote-": "block 1: binary digits of minus the cell that this token wrote to, likewise",
    "read": "block 2: the symbol under the head",
    "next state": "block 2, MLP: the state that the rule enters",
    "next symbol": "block 2, MLP: the symbol that the rule writes",
    "next move": "block 2, MLP: where the rule moves the head",
    "halt": "block 2, MLP: there is no rule",
}
"""Every group of coordinates: who writes it, and what it means."""


@dataclass(frozen=True)
class Head:
    """An attention head: where it is and what it does."""

    block: int
    head: int
    name: str
    does: str


HEADS = (
    Head(0, 0, "odometer", "weighs all tokens alike and adds up their moves: the head's cell"),
    Head(1, 0, "ruler here+", "attends to token number x, x the head's cell, and copies its index exactly"),
    Head(1, 1, "ruler here-", "attends to token number -x likewise; to the first token if x > 0"),
    Head(1, 2, "ruler wrote+", "the same for the cell that this token wrote to, x minus its own move"),
    Head(1, 3, "ruler wrote-", "the same for minus that cell"),
    Head(2, 0, "last write", "attends to the last token that wrote to the head's cell and copies its symbol; "
         "to the first token, which stands for the blank, if none did"),
)  # fmt: skip
"""All heads that do something; the others of the same blocks have weights 0."""
