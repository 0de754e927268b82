"""RASP programs as a source: nodes, a vocabulary and a greatest length; and their plain interpreter."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tapegrad.errors import InputError, Refused, SourceError
from tapegrad.rasp.functions import Value, as_python, ordered, plain, shown
from tapegrad.rasp.language import gathered
from tapegrad.rasp.nodes import (
    MOST_WORK,
    Aggregate,
    Apply,
    Combine,
    Full,
    Indices,
    Node,
    Select,
    Sequence_,
    Tokens,
    Width,
    cases_of,
    check_nodes,
    few,
    values_of,
)

LONGEST = 1 << 12
"""Greatest length: counts beyond are too near each other for single precision (see docs/rasp.md)."""
MOST_NODES = 1 << 14
MOST_TOKENS = 1 << 12

State = tuple[Value, ...]
"""The tokens, then the output: a value for each position."""


@dataclass(frozen=True)
class RaspProgram:
    """A sequence of values for every sequence of up to `length` tokens."""

    nodes: tuple[Node, ...]
    output: int
    vocabulary: tuple[Value, ...]
    length: int
    causal: bool = False
    """Whether no position may select a later one."""
    names: Mapping[int, str] = field(default_factory=dict)
    """Of nodes; those without one have a name by their number."""
    name: str = "rasp"

    def __post_init__(self) -> None:
        if not 1 <= self.length <= LONGEST:
            raise Refused(
                f"a greatest length of {self.length:,} tokens cannot be built",
                advice=f"Ask for 1 to {LONGEST:,}.",
            )
        if not 1 <= len(self.vocabulary) <= MOST_TOKENS or len(self.nodes) > MOST_NODES:
            raise Refused(
                f"the program has {len(self.vocabulary):,} tokens and {len(self.nodes):,} expressions",
                advice=f"There must be 1 to {MOST_TOKENS:,} tokens, and at most {MOST_NODES:,} expressions.",
            )
        if len(set(self.vocabulary)) < len(self.vocabulary) or None in self.vocabulary:
            raise SourceError("two tokens of the vocabulary are equal, or one of them is no value")
        check_nodes(self.nodes)
        if not 0 <= self.output < len(self.nodes) or not isinstance(self.nodes[self.output], Sequence_):
            raise SourceError("the output of the program is not a sequence")

    def __hash__(self) -> int:
        return hash((self.nodes, self.output, self.vocabulary, self.length, self.causal))

    def title(self, node: int) -> str:
        """What a node is called."""
        return self.names.get(node) or f"{type(self.nodes[node]).__name__.lower()} {node}"

    @cached_property
    def values(self) -> tuple[tuple[Value, ...], ...]:
        """All values that each sequence can take."""
        known: list[tuple[Value, ...]] = []
        work = 0
        for number, node in enumerate(self.nodes):
            work += cases_of(node, known)
            few(work, MOST_WORK, self.name, "cases, of all functions together")
            known.append(values_of(node, known, self.vocabulary, self.length, self.title(number)))
        return tuple(known)

    # The interpreter

    def start(self, tokens: Sequence[Value] = ()) -> State:
        """The tokens, if there are not too many and all are in the vocabulary."""
        found = tuple(plain(token) for token in tokens)
        if len(found) > self.length:
            raise InputError(
                f"{len(found):,} tokens were given, and {self.name!r} takes at most {self.length:,}",
                advice="Make the program again with a greater length.",
            )
        known = {token: token for token in self.vocabulary}
        for place, token in enumerate(found):
            if token not in known:
                raise InputError(
                    f"{shown(token)} is not in the vocabulary of {self.name!r}",
                    where=f"token {place + 1}",
                    advice=f"Tokens are {', '.join(shown(own) for own in self.vocabulary[:20])}.",
                )
        return tuple(known[token] for token in found)

    def run(self, state: State) -> Iterator[State]:
        """The tokens, then the output."""
        yield state
        yield tuple(self.evaluate(state)[self.output])

    def __call__(self, tokens: Sequence[Value]) -> list[Value]:
        """The output, as Python has it."""
        return [as_python(value) for value in self.evaluate(self.start(tokens))[self.output]]

    def evaluate(self, tokens: State, held: Mapping[int, list[Any]] | None = None) -> list[list[Any]]:
        """Every node for these tokens: values of sequences, rows of selectors. Nodes may be held at what is
        given for them."""
        found: list[list[Any]] = []
        places = range(len(tokens))
        for number, node in enumerate(self.nodes):
            if held is not None and number in held:
                found.append(held[number])
            elif isinstance(node, Tokens):
                found.append(list(tokens))
            elif isinstance(node, Indices):
                found.append(list(places))
            elif isinstance(node, Full):
                found.append([node.value] * len(tokens))
            elif isinstance(node, Apply):
                arguments = [found[own] for own in node.arguments]
                found.append([node.at(*values) for values in zip(*arguments, strict=True)])
            elif isinstance(node, Select):
                keys, queries = found[node.keys], found[node.queries]
                found.append(
                    [[self._sees(q, k) and node.at(keys[k], queries[q]) for k in places] for q in places]
                )
            elif isinstance(node, Combine):
                found.append(self._combined(node, [found[own] for own in node.arguments]))
            elif isinstance(node, Width):
                found.append([sum(row) for row in found[node.selector]])
            else:
                found.append(self._gathered(number, node, found))
        return found

    def _sees(self, query: int, key: int) -> bool:
        return not self.causal or key <= query

    def _combined(self, node: Combine, inner: list[list[list[bool]]]) -> list[list[bool]]:
        places = range(len(inner[0]))
        if node.sign == "not":
            return [[self._sees(q, k) and not inner[0][q][k] for k in places] for q in places]
        first, second = inner
        if node.sign == "and":
            return [[first[q][k] and second[q][k] for k in places] for q in places]
        return [[first[q][k] or second[q][k] for k in places] for q in places]

    def _gathered(self, number: int, node: Aggregate, found: list[list[Any]]) -> list[Value]:
        values = found[node.sequence]
        if node.mean:  # of true and false it is a number, also where all are the same
            values = [int(value) if isinstance(value, bool) else value for value in values]
        return [
            gathered(self.title(number), [values[k] for k, own in enumerate(row) if own], node.default)
            for row in found[node.selector]
        ]


def vocabulary_of(tokens: Any) -> tuple[Value, ...]:
    """The tokens of a vocabulary in order, however they are given."""
    return ordered(plain(token) for token in tokens)
