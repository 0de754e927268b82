"""RASP programs as a kind of source: how inputs are typed, chosen and shown."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Any

import numpy as np

from tapegrad._panels import Cells, CellsFrame, Panel
from tapegrad.errors import InputError
from tapegrad.rasp.files import from_json, to_json
from tapegrad.rasp.functions import Value, as_python, shown
from tapegrad.rasp.library import READY
from tapegrad.rasp.nodes import Aggregate, Apply, Indices, Pairs, Select, Table, Tokens, Width
from tapegrad.rasp.printing import written
from tapegrad.rasp.program import RaspProgram, State
from tapegrad.rasp.sampler import random_program
from tapegrad.rasp.text import FORMAT
from tapegrad.source import Call, Inputs, Lowering, Option, Ready, ReadyBy, SourceKind, shortened

EXHAUSTIVE = 100_000
"""Up to so many inputs there are all of them."""
SAMPLED = 64
"""Inputs of random lengths beyond that, besides those of the greatest length."""
WIDEST = 200


def parse_input(program: RaspProgram, texts: Sequence[str]) -> tuple[tuple[Value, ...]]:
    """Tokens with spaces between them; or letter by letter, where tokens are letters."""
    words = " ".join(texts).split()
    known = {word_of(token): token for token in program.vocabulary}
    known |= {shown(token): token for token in program.vocabulary}
    letters = all(len(word_of(token)) == 1 for token in program.vocabulary)
    if len(words) == 1 and words[0] not in known and (letters or all(own in known for own in words[0])):
        words = list(words[0])
    for place, word in enumerate(words):
        if word not in known:
            raise InputError(
                f"{word!r} is not in the vocabulary of {program.name!r}",
                where=f"token {place + 1}",
                advice=f"Tokens are {', '.join(word_of(token) for token in program.vocabulary[:20])}.",
            )
    return (tuple(known[word] for word in words),)


def call(program: RaspProgram, given: tuple[Any, ...], named: Mapping[str, Any]) -> Call:
    """The tokens: as a list, one by one, or as a text with spaces between them. What comes back is a tuple,
    a value for each token."""
    if named:
        raise InputError(f"the tokens of {program.name!r} have no names", advice="Give them in order.")
    one = given[0] if len(given) == 1 else None
    if isinstance(one, str) and one not in program.vocabulary:
        return Call(parse_input(program, [one]), tuple)
    if isinstance(one, Iterable) and not isinstance(one, str):
        return Call((tuple(one),), tuple)
    return Call((given,), tuple)


def word_of(token: Value) -> str:
    """A value as it is typed and shown."""
    return token if isinstance(token, str) else shown(token)


def default_inputs(
    program: RaspProgram, random: np.random.Generator, in_batches: bool
) -> tuple[Inputs, bool]:
    """All inputs where they are few, else all that are short, and a sample."""
    size = len(program.vocabulary)
    counts = [size**length for length in range(program.length + 1)]
    if sum(counts) <= EXHAUSTIVE:
        lengths = range(program.length + 1)
        return ((word,) for length in lengths for word in product(program.vocabulary, repeat=length)), True
    short = [length for length in range(program.length + 1) if sum(counts[: length + 1]) <= SAMPLED * 4]
    every = ((word,) for length in short for word in product(program.vocabulary, repeat=length))
    return chain(every, _sampled(program, random)), False


def _sampled(program: RaspProgram, random: np.random.Generator) -> Iterator[tuple[tuple[Value, ...]]]:
    for number in range(SAMPLED):
        length = program.length if number % 4 == 0 else int(random.integers(1, program.length + 1))
        places = random.integers(0, len(program.vocabulary), length)
        yield (tuple(program.vocabulary[place] for place in places.tolist()),)


def describe(program: RaspProgram) -> str:
    """The text, with tables only by their size; and how many values each sequence has."""
    most = max(map(len, program.values), default=0)
    tables = sum(
        isinstance(getattr(node, "function", None), Table)
        or (isinstance(node, Select) and isinstance(node.predicate, Pairs))
        for node in program.nodes
    )
    text = "\n".join(shortened(line, WIDEST) for line in written(program).splitlines())
    return f"{text}\n# {len(program.nodes)} expressions, {tables} tables; at most {most:,} values"


def state_text(program: RaspProgram, state: State) -> str:
    """Values with spaces between them."""
    return " ".join(word_of(value) for value in state)


def state_json(program: RaspProgram, state: State) -> list[Any]:
    """Values as JSON has them."""
    return [list(value) if isinstance(value, tuple) else as_python(value) for value in state]


def titled(program: RaspProgram, node: int) -> str:
    """The name of a sequence, as people know it."""
    own = program.nodes[node]
    return type(own).__name__.lower() if isinstance(own, Tokens | Indices) else program.title(node)


class SequenceView:
    """The tokens, the sequences on the way that have a name or a selector, and the output below them."""

    def __init__(self, program: RaspProgram) -> None:
        self.program = program
        self.first: State | None = None
        self.between = [
            n
            for n, node in enumerate(program.nodes)
            if n != program.output
            and (
                isinstance(node, Indices | Width | Aggregate)
                or (isinstance(node, Apply) and n in program.names)
            )
        ]
        titles = [titled(program, node) for node in self.between]
        self.panels: list[Panel] = [
            Cells(
                "Sequences",
                "text",
                rows=("tokens", *titles, "output"),
                default=("",),
                column_name="position",
                room=0,
            )
        ]

    def frame(self, state: State) -> list[Any]:
        """The tokens at first, then everything. Positions are counted from 1, as in the net, where another
        token stands before them."""
        rows: list[Sequence[Value]] = [state]
        if self.first is None:
            self.first = state
        elif state is not self.first:
            found = self.program.evaluate(self.first)
            rows = [self.first, *(found[node] for node in self.between), state]
        cells = [(r, c, word_of(value)) for r, row in enumerate(rows) for c, value in enumerate(row, 1)]
        return [CellsFrame(cells)]


RASP = SourceKind(
    name="rasp program",
    type=RaspProgram,
    to_json=to_json,
    from_json=from_json,
    formats=(FORMAT,),
    ready=ReadyBy(
        READY, lambda name, entry: Ready(entry.summary, entry.build, lambda: (tuple(entry.example.split()),))
    ),
    parse_input=parse_input,
    call=call,
    input_needed="Write its tokens with spaces between them, as in --input 'a b c'.",
    default_inputs=default_inputs,
    sample=random_program,
    describe=describe,
    state_json=state_json,
    state_text=state_text,
    view=SequenceView,
    lowerings=(
        Lowering(
            "circuit",
            "tapegrad.lowering.rasp_circuit:rasp_circuit",
            {"count": Option(..., "the number of tokens, which the circuit is for")},
            "tapegrad.lowering.rasp_circuit:suits",
        ),
    ),
)
