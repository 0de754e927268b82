"""RASP programs as a kind of source: how inputs are typed, chosen and shown."""

from collections.abc import Iterator, Sequence
from itertools import chain, product
from typing import Any

import numpy as np

from tapegrad._panels import Cells, CellsFrame, Panel
from tapegrad.errors import InputError
from tapegrad.rasp.files import from_json, to_json
from tapegrad.rasp.functions import Value, as_python, shown
from tapegrad.rasp.library import READY
from tapegrad.rasp.nodes import Pairs, Select, Table
from tapegrad.rasp.printing import written
from tapegrad.rasp.program import RaspProgram, State
from tapegrad.rasp.sampler import random_program
from tapegrad.rasp.text import FORMAT
from tapegrad.source import Inputs, Lowering, Option, Ready, ReadyBy, SourceKind, shortened

EXHAUSTIVE = 100_000
"""Up to so many inputs there are all of them."""
SAMPLED = 64
"""Inputs of random lengths beyond that, besides those of the greatest length."""
WIDEST = 200


def parse_input(program: RaspProgram, texts: Sequence[str]) -> tuple[tuple[Value, ...]]:
    """Tokens with spaces between them; or letter by letter, where tokens are letters."""
    words = " ".join(texts).split()
    known = {_word(token): token for token in program.vocabulary}
    known |= {shown(token): token for token in program.vocabulary}
    if len(words) == 1 and words[0] not in known and all(letter in known for letter in words[0]):
        words = list(words[0])
    for place, word in enumerate(words):
        if word not in known:
            raise InputError(
                f"{word!r} is not in the vocabulary of {program.name!r}",
                where=f"token {place + 1}",
                advice=f"Tokens are {', '.join(_word(token) for token in program.vocabulary[:20])}.",
            )
    return (tuple(known[word] for word in words),)


def _word(token: Value) -> str:
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
    return " ".join(_word(value) for value in state)


def state_json(program: RaspProgram, state: State) -> list[Any]:
    """Values as JSON has them."""
    return [list(value) if isinstance(value, tuple) else as_python(value) for value in state]


class SequenceView:
    """The tokens, and the output below them."""

    def __init__(self, program: RaspProgram) -> None:
        self.first: State | None = None
        self.panels: list[Panel] = [
            Cells("Sequence", "position", rows=("tokens", "output"), column_name="value")
        ]

    def frame(self, state: State) -> list[Any]:
        self.first = state if self.first is None else self.first
        rows = [self.first] if state is self.first else [self.first, state]
        cells = [(r, c, _word(value)) for r, row in enumerate(rows) for c, value in enumerate(row)]
        return [CellsFrame(cells, widths=[len(row) for row in rows])]


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
