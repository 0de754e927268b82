"""Nets of RASP programs on the page: sequences read from the residual stream, heads, the output."""

import pytest

import tapegrad as tg
from tapegrad.rasp.library import READY
from tapegrad.rasp.text import read
from tapegrad.show.recorder import record


def shown(program, text):
    """For every panel the cells of the last frame, row by row."""
    made = record(tg.compile(program, "decoder"), tuple(text.split()))
    rows = {}
    for panel, frame in zip(made.panels, made.frames[-1]["panels"], strict=True):
        if panel["kind"] in ("drawing", "network"):
            continue
        cells = [[""] * panel["columns"] for _ in panel["rows"]]
        for r, c, value in frame["cells"]:
            cells[r][c] = value
        rows[panel["side"], panel["title"]] = dict(zip(panel["rows"], cells, strict=True))
    return made, rows


def test_sort():
    made, rows = shown(READY["rasp-sort"].build(), "c a d a")
    assert made.agreed
    assert "language model" not in made.summary
    for title in (("source", "Sequences"), ("network", "Sequences in the residual stream")):
        assert rows[title]["tokens"] == ["c", "a", "d", "a"]
        assert rows[title]["place"] == ["2", "0", "3", "1"]
    assert rows["network", "Output of the network"]["output"] == ["a", "a", "c", "d"]
    counts = rows["network", "Head 1.0"]
    assert counts["1 c"] == [0.3333, "", 0.3333, "", 0.3333]
    moves = rows["network", "Head 2.0"]
    assert [row.index(1) for row in moves.values()] == [2, 4, 1, 3]
    assert len(made.frames) == 2
    empty = zip(made.panels, made.frames[0]["panels"], strict=True)
    assert all(not frame["cells"] for panel, frame in list(empty)[1:] if panel["kind"] == "cells")


def test_values_that_are_left_open():
    """Only whether the balance is 0 matters to the net, not how large it is."""
    _, rows = shown(READY["rasp-dyck-1"].build(), "( ( )")
    own = rows["network", "Sequences in the residual stream"]
    assert own["balance_()"] == ["1/16…1"] * 3
    assert rows["source", "Sequences"]["balance_()"] == ["1", "1", "1/3"]


@pytest.mark.parametrize("name", READY)
def test_all_ready_programs(name):
    made, rows = shown(READY[name].build(), READY[name].example)
    assert made.agreed
    output = rows["network", "Output of the network"]["output"]
    assert output == rows["source", "Sequences"]["output"]


def test_a_refusal_is_shown():
    text = "rasp mixes\nvocabulary a b\nlength 4\noutput = aggregate(select(tokens, tokens, true), tokens)\n"
    with pytest.raises(tg.TapegradError, match="differ"):
        shown(read(text.encode()), "a b")
