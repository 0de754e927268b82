"""Whatever the text, a reader gives a machine or one of our errors, and soon."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.errors import TapegradError
from tapegrad.machines.formats import FORMATS, Loaded, detect, read
from tests.machines.test_formats_reading import MULTITAPE, YAML

MORPHETT = "0 1 x r 0 ; comment\n0 * * l b !\n* _ _ * halt-accept\nb x * r *\n; $INITIAL_TAPE: 1*1"
SEEDS = [
    *(format.example for format in FORMATS),
    YAML,
    MULTITAPE,
    MORPHETT,
    "1RB1LC_1RC1RB_1RD0LE_1LA1LD_1RZ0LA",
]
FRAGMENTS = [
    *"{}[]()'\"\\,:;|>&*!%@`#?-_~ \t\n\r0129aZ/", "---", "...", "? ", ": ", "//", "''", "!!str ",
    "&a ", "*a ", "<<: ", "\u00e9", "\u2028", "\U0001f600", "\ufeff", "\x00", "\x1b", "source code: |\n ",
    "table:", "init:", "$INITIAL_TAPE:", "halt", "null", "999999999999",
]  # fmt: skip


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """A valid text with a few pieces cut out, doubled, swapped or put in."""
    text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(start + 12, len(text))))
        piece = draw(
            st.one_of(
                st.sampled_from(FRAGMENTS), st.just(""), st.just(text[start:end] * 2), st.text(max_size=3)
            )
        )
        text = text[:start] + piece + text[end:]
    return text


TEXTS = st.one_of(
    mutations(), st.text(max_size=60), st.lists(st.sampled_from(FRAGMENTS), max_size=20).map("".join)
)


def check(data: bytes | str, name: str | None) -> None:
    try:
        loaded = read(data, format=name)
    except TapegradError as error:
        paragraphs = str(error).count("\n") + 1
    else:
        paragraphs = 1
        assert isinstance(loaded, Loaded)
        assert loaded.start() is not None
    assert paragraphs == 1


NAMES = st.sampled_from([None, *(format.name for format in FORMATS)])


@settings(deadline=None, max_examples=400)
@given(TEXTS, NAMES)
def test_texts(text, name):
    check(text, name)


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=60), NAMES)
def test_bytes(data, name):
    detect(data)
    check(data, name)


def mutated(dice: random.Random) -> bytes:
    """As `mutations`, without hypothesis, which would take ten times as long; now and then a broken byte."""
    text = dice.choice(SEEDS)
    for _ in range(dice.randint(1, 5)):
        start = dice.randint(0, len(text))
        end = min(start + dice.choice([0, 0, 1, 2, 12]), len(text))
        piece = dice.choice([dice.choice(FRAGMENTS), "", text[start:end] * 2, chr(dice.randrange(0xD800))])
        text = text[:start] + piece + text[end:]
    data = text.encode()
    if dice.random() < 0.05:
        place = dice.randint(0, len(data))
        data = data[:place] + dice.randbytes(2) + data[place:]
    return data


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_many_texts(seed):
    dice = random.Random(seed)
    names = [*[None] * len(FORMATS), *(format.name for format in FORMATS)]
    for _ in range(50_000):
        check(mutated(dice), dice.choice(names))
