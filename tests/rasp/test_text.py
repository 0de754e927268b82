"""RASP as text: it is read, printed, detected, and refused with the line."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import tapegrad as tg
from tapegrad.cli import app
from tapegrad.errors import FormatError, TapegradError
from tapegrad.rasp.files import from_json, to_json
from tapegrad.rasp.library import READY
from tapegrad.rasp.program import RaspProgram
from tapegrad.rasp.sampler import random_program
from tapegrad.rasp.text import FORMAT, read, written

HEAD = "rasp mine\nvocabulary a b\nlength 4\n"


def program(body, head=HEAD):
    return read((head + body).encode())


@pytest.mark.parametrize("name", READY)
def test_what_is_printed_is_read(name):
    made = READY[name].build()
    again = read(written(made).encode())
    assert written(again) == written(made)
    tokens = READY[name].example.split()
    assert again(tokens) == made(tokens)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_are_printed_and_read(seed):
    made = random_program(seed)
    assert written(read(written(made).encode())) == written(made)


@pytest.mark.parametrize(
    ("body", "tokens", "expected"),
    [
        ("output = indices + 1", "ab", [1, 2]),
        ("output = -1 * indices * 2 + 10 % 4", "ab", [2, 0]),
        ("output = indices * (1/3)", "aba", [0, 1 / 3, 2 / 3]),
        ("output = not indices < 1 or tokens == \"a\"", "bba", [False, True, True]),
        ('x = map(tokens, {"a": 1, "b": none})\noutput = x + 1', "ab", [2, None]),
        ('output = map(tokens, indices < 1, {("a", true): "x", ("a", false): "y", ("b", true): "z", '
         '("b", false): (1, "w")})', "ab", ["x", (1, "w")]),
        ("output = width(select(indices, indices, {(0, 1), (1, 1), (2, 3)}))", "abab", [0, 2, 0, 1]),
        ("output = aggregate(select(indices, indices, >), tokens, \"b\")  # later", "aa", ["a", "b"]),
        ("output = mean(select(tokens, tokens, ==), indices, 0)", "aba", [1, 1, 1]),
        ("output = width(not (select(tokens, tokens, ==) and select(indices, indices, <)))", "aa", [2, 1]),
        ("output = length", "ab", [2, 2]),
    ],
)  # fmt: skip
def test_reading(body, tokens, expected):
    assert program(body)(list(tokens)) == expected


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("output = tokens +", r"wanted.*line 4"),
        ("output = x", r"no 'x' before this line.*line 4, column"),
        ("x = tokens\nx = indices\noutput = x", r"'x' is taken.*line 5"),
        ("map = tokens\noutput = map", "'map' is taken"),
        ("x = tokens", "no output"),
        ("output = select(tokens, tokens, ==)", "not a sequence"),
        ("output = width(tokens)", "wants a selector"),
        ("output = select(tokens, tokens, ==) + 1", "joins a selector and a sequence"),
        ("output = select(tokens, tokens, =)", "no comparison"),
        ("output = select(tokens, tokens, {1})", "set of pairs"),
        ("output = map(tokens, {\"a\": 1})", "has no value for \"b\""),
        ("output = frob(tokens)", "no function 'frob'"),
        ("output = tokens ?", "cannot be read"),
        ("output = tokens tokens", "the end is wanted"),
        ("output = " + "(" * 200 + "1", "nested too deeply"),
        ("fnord", "neither a setting"),
    ],
)  # fmt: skip
def test_refusals(body, message):
    with pytest.raises(TapegradError, match=message):
        program(body)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("rasp x\nlength 3\n", "no vocabulary"),
        ("rasp x\nvocabulary a\n", "no length"),
        ("rasp x\nvocabulary a\nlength many\n", "not a length"),
        ("rasp x\nvocabulary a\nlength 999999\n", "cannot be built"),
        ("rasp x\nvocabulary a\nlength 0\n", "cannot be built"),
    ],
)
def test_settings(head, message):
    with pytest.raises(TapegradError, match=message):
        program("output = tokens", head)


def test_any_damage_is_an_error_of_ours():
    """Letters lost, doubled or swapped: the parser reads or refuses, and never fails otherwise."""
    random, text = np.random.default_rng(0), written(READY["rasp-dyck-1"].build())
    for _ in range(300):
        letters = list(text)
        for _ in range(random.integers(1, 4)):
            place, kind = int(random.integers(len(letters))), int(random.integers(3))
            letters[place : place + 1] = ["", letters[place] * 2, str(random.choice(list('()=,{}"x1 <')))][
                kind
            ]
        try:
            read("".join(letters).encode())
        except TapegradError:
            continue


def test_detection(tmp_path):
    made = tg.read(FORMAT.example)
    assert isinstance(made, RaspProgram)
    assert made(["a", "b"]) == [2, 2]
    file = tmp_path / "sort.rasp"
    file.write_text("# a comment\n" + written(READY["rasp-sort"].build()))
    words = ["run", str(file), "--target", "decoder", "--input", "c a b", "--json"]
    done = json.loads(CliRunner().invoke(app, words).output)
    assert done["output"] == ["a", "b", "c"]
    assert done["verified"] is True
    shown = CliRunner().invoke(app, ["show", str(file)]).output
    assert "output = aggregate(" in shown
    bad = CliRunner().invoke(app, ["run", str(file), "--target", "decoder", "--input", "c x"])
    assert "'x' is not in the vocabulary" in str(bad.exception)
    bad = CliRunner().invoke(
        app, ["run", str(file), "--target", "decoder", "--input", "cax"]
    )  # letter by letter
    assert "'x' is not in the vocabulary of 'sort' (token 3)" in str(bad.exception)
    with pytest.raises(FormatError, match="UTF-8"):
        read(b"rasp \xff")


def test_work_is_bounded(monkeypatch):
    """A short text may ask for a great deal."""
    monkeypatch.setattr("tapegrad.rasp.closing.MOST_WORK", 20_000)
    lines = "".join(f"x{n} = {'indices' if n == 0 else f'x{n - 1}'} % (indices + {n})\n" for n in range(5))
    with pytest.raises(TapegradError, match="'apply 9' has 30,000 cases, with all functions"):
        read(f"rasp x\nvocabulary a\nlength 100\n{lines}output = x4\n".encode())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('output = width(select(tokens, tokens, {(none, "a")}))', "no predicate is asked about none"),
        ("output = tokens +", "the end of the line where a name is wanted"),
    ],
)
def test_what_is_missing_is_named(body, message):
    with pytest.raises(FormatError, match=message):
        program(body)


def test_pairs_with_none_are_refused_in_files_too():
    data = to_json(program('output = width(select(tokens, tokens, {("b", "a")}))'))[0]
    ((place, node),) = [(n, own) for n, own in enumerate(data["nodes"]) if own[0] == "pairs"]
    data["nodes"][place] = ["pairs", [[None, "a"]], *node[2:]]
    with pytest.raises(TapegradError, match="pairs with none"):
        from_json(data, {})
