"""The tokens: each says what is written and where the head goes, and steps of the machine also the new state.

An input is told as a writer would write it: from right to left, then back to the cell of the head. The last
token of a prompt enters the start state. So the prompt needs no rules of its own: head position and tape
content follow from it as they follow from the machine's steps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tapegrad.errors import InputError
from tapegrad.machines.model import LEFT, RIGHT, Configuration

BEGIN, HALT = 0, 1
"""Numbers of the first token of every prompt, and of the token that ends a run."""

MOVES = {LEFT: "left", 0: "stay", RIGHT: "right"}


@dataclass(frozen=True)
class Token:
    """`state` is None for tokens that only write."""

    state: str | None
    write: str
    move: int

    def __str__(self) -> str:
        enters = "" if self.state is None else f", enter {self.state}"
        return f"write {self.write}, {MOVES[self.move]}{enters}"


Rules = tuple[tuple[str, str, str, str, int], ...]
"""State, symbol, new state, symbol written, move."""


@dataclass(frozen=True)
class Vocabulary:
    """BEGIN, HALT, a token for each symbol and direction to write inputs with, a token for each way into the
    start state, and a token for each outcome of a rule."""

    states: tuple[str, ...]
    symbols: tuple[str, ...]
    blank: str
    start_state: str
    rules: Rules

    @cached_property
    def tokens(self) -> tuple[Token | None, ...]:
        """By number; None for BEGIN and HALT."""
        writing = [Token(None, symbol, move) for move in (LEFT, RIGHT) for symbol in self.symbols]
        entering = [Token(self.start_state, symbol, RIGHT) for symbol in self.symbols]
        stepping = [Token(new, write, move) for _, _, new, write, move in self.rules]
        return (None, None, *dict.fromkeys([*writing, *entering, *stepping]))

    @cached_property
    def number(self) -> dict[Token, int]:
        """The number of a token."""
        return {token: number for number, token in enumerate(self.tokens) if token is not None}

    @property
    def names(self) -> tuple[str, ...]:
        """Every token in words, by number."""
        return ("begin", "halt", *(str(token) for token in self.tokens[2:]))

    def prompt(self, first: Configuration) -> list[int]:
        """The first configuration as tokens."""
        if first.state != self.start_state:
            raise InputError(f"the net starts in state {self.start_state!r}, not in {first.state!r}")
        return [BEGIN, *(self.number[token] for token in self._writing(first))]

    def _writing(self, first: Configuration) -> Iterator[Token]:
        tape, before_head = first.tapes[0], first.heads[0] - 1
        at = before_head
        if tape:
            at = max(tape)
            while at >= min(tape):
                yield Token(None, tape.get(at, self.blank), LEFT)
                at -= 1
        while at != before_head:
            move = RIGHT if at < before_head else LEFT
            yield Token(None, tape.get(at, self.blank), move)
            at += move
        yield Token(self.start_state, tape.get(at, self.blank), RIGHT)

    def steps(self, numbers: Sequence[int]) -> list[Token]:
        """Generated tokens as steps of the machine, up to HALT."""
        found = []
        for number in numbers:
            token = self.tokens[number] if 0 <= number < len(self.tokens) else None
            if token is None or token.state is None:
                break
            found.append(token)
        return found

    def configurations(self, first: Configuration, numbers: Sequence[int]) -> Iterator[Configuration]:
        """The machine's configurations that a run of generated tokens tells, the first one included."""
        current = first
        yield current
        for token in self.steps(numbers):
            tape = dict(current.tapes[0]) | {current.heads[0]: token.write}
            shown = {cell: symbol for cell, symbol in tape.items() if symbol != self.blank}
            assert token.state is not None
            current = Configuration(token.state, (shown,), (current.heads[0] + token.move,))
            yield current
