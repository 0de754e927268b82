"""Runs that the page computes by itself, equal to those of the engine in Python: the page's own file, run by
Node, and the whole page in Chromium."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad._sources import find, read
from tapegrad.circuits.model import Circuit
from tapegrad.machines.model import Configuration, Rule, TuringMachine
from tapegrad.show import page as page_module
from tapegrad.show.page import page
from tapegrad.show.recorder import record
from tapegrad.show.views_tape import cellwise
from tapegrad.targets.relu.compact.net import CompactNet
from tapegrad.targets.simplex.net import SimplexNet
from tapegrad.targets.tape.net import TapeNet
from tests.show.chrome import Chrome, installed
from tests.show.test_drawings import drawing

SCRIPT = Path(page_module.__file__).parent / "assets" / "live.js"
node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")


def in_node(live: dict, call: str) -> Any:
    """What a call gives, of the functions in the page's file, on these arrays."""
    names = "tapeRun, simplexRun, simplexStart, rcnnRun, reluRun, reluBits"
    program = f"const {{{names}}} = require({json.dumps(str(SCRIPT))});"
    program += f"const net = {json.dumps(live)}; console.log(JSON.stringify({call}));"
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


@node
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("busy-beaver-4x2", ["", "1", "0110"]),
        ("increment", ["1011", "", "111", "0"]),
        ("palindrome", ["abba", "ab", "", "babab"]),
        ("brackets", ["[()]", "[(])"]),
    ],
)
def test_gradient_descent_in_the_page_is_that_of_the_engine(name, words):
    """Vertex, tapes, heads and loss after every step, on inputs that the net was not compiled for."""
    compiled = tg.compile(find(name).source, "tape", cells=64)
    live = record(compiled, words[0]).live
    assert live is not None
    net = compiled.net
    assert isinstance(net, TapeNet)
    for word in words:
        moments = in_node(live, f"tapeRun(net, {json.dumps(word)}, 400)")
        carry = compiled.start(word)
        for moment in moments:
            vertex, T, heads = net.one_hot(carry)
            ones = [(np.flatnonzero(T[:, tape] > 0) + net.first_cell).tolist() for tape in range(net.tapes)]
            assert moment["vertex"] == vertex
            assert moment["ones"] == ones
            assert moment["heads"] == (heads + net.first_cell).tolist()
            assert moment["loss"] == pytest.approx(net.loss(carry), rel=1e-12)
            assert moment["halted"] == net.done(carry)
            carry = net.advance(carry, 1)
        assert moments[-1]["halted"]


@node
def test_the_loss_of_a_simplex_falls_in_the_page_as_in_the_engine():
    """Vertex, steepest slope and loss after every step, from every input that has a vertex; another has none,
    and is told which have."""
    compiled = tg.compile(find("increment").source, "simplex", longest=2)
    live, net = record(compiled, "11").live, compiled.net
    assert live is not None
    assert isinstance(net, SimplexNet)
    words = ["", "0", "1", "00", "01", "10", "11"]
    assert {*live["starts"]} == {*words}
    runs = in_node(live, f"{json.dumps(words)}.map((word) => simplexRun(net, simplexStart(net, word), 400))")
    for word, moments in zip(words, runs, strict=True):
        carry = compiled.start(word)
        for moment in moments:
            s = np.asarray(carry.weights.s)
            assert s[moment["vertex"]] == 1
            assert moment["loss"] == pytest.approx(net.loss(carry), rel=1e-12)
            assert moment["halted"] == net.done(carry)
            if moment["towards"] is not None:
                assert moment["towards"] == np.asarray(net.gradient(carry).s).argmin()
            carry = net.advance(carry, 1)
        assert moments[-1]["halted"]
    for word, said in (("101", "no weight for this input.*built for .*01"), ("2", "no symbol 2")):
        with pytest.raises(subprocess.CalledProcessError) as refused:
            in_node(live, f"simplexStart(net, {json.dumps(word)})")
        assert re.search(said, refused.value.stderr)


@node
@pytest.mark.parametrize("form", ["practical", "paper"])
def test_a_convolution_in_the_page_is_that_of_the_engine(form):
    """Every number of every cell after every layer, and the layer after which no rule applies any more."""
    compiled = tg.compile(find("increment").source, "rcnn", margin=3, form=form)
    live, net = record(compiled, "1011").live, compiled.net
    assert live is not None
    for word in ("110", "11"):
        found = in_node(live, f"rcnnRun(net, {json.dumps([word])}, 400)")
        numbers = np.array([own["vector"] for own in found["pool"]])
        carry = compiled.start(word)
        for moment in found["moments"]:
            grid = numbers[np.array(moment["grid"])].reshape(found["height"], found["width"], -1)
            assert np.abs(np.moveaxis(grid, -1, 0) - carry.grid).max() < 1e-9
            assert moment["halted"] == net.done(carry)
            carry = net.step(carry)
        assert found["moments"][-1]["halted"]


@node
@pytest.mark.parametrize("way", ["NESW", "SWNE"])
def test_a_convolution_in_the_page_goes_every_way(way):
    """Round a square, once in each direction: a cell is computed again when one on any side has changed."""
    rules = ",".join(f"{{{{1,'{move}',{number + 1}}},{{1,'',0}}}}" for number, move in enumerate(way))
    compiled = tg.compile(f"{{{rules},{{{{1,'',0}},{{1,'',0}}}}}}", "rcnn", margin=2)
    live = record(compiled).live
    assert live is not None
    found = in_node(live, "rcnnRun(net, [''], 40)")
    numbers = np.array([own["vector"] for own in found["pool"]])
    carry = compiled.start()
    for moment in found["moments"]:
        grid = numbers[np.array(moment["grid"])].reshape(found["height"], found["width"], -1)
        assert np.abs(np.moveaxis(grid, -1, 0) - carry.grid).max() < 1e-9
        state = compiled.net.decode(carry)
        assert state is not None
        row, column = np.subtract(state.head, carry.corner)
        assert moment["heads"] == [row * found["width"] + column]
        carry = compiled.net.step(carry)
    assert len(found["moments"]) == 6


@node
def test_what_does_not_fit_a_convolution_is_said():
    live = record(tg.compile(find("busy-beaver-3x2").source, "rcnn", margin=1), steps=1).live
    assert live is not None
    for call, said in (
        ("['']", "The head left the grid of 3 x 3 cells"),
        ("['2']", "no symbol 2; it has 0 1"),
    ):
        with pytest.raises(subprocess.CalledProcessError) as refused:
            in_node(live, f"rcnnRun(net, {call}, 400)")
        assert said in refused.value.stderr


@node
@pytest.mark.slow
@pytest.mark.parametrize("name", ["adder8", "comparator4", "multiplier4", "popcount8"])
def test_a_relu_network_in_the_page_is_that_of_the_engine(name):
    circuit = read(name)
    assert isinstance(circuit, Circuit)
    compiled = tg.compile(circuit, "relu", form="practical")
    net = compiled.net
    assert isinstance(net, CompactNet)
    rows = np.random.default_rng(0).integers(0, 2, (6, len(circuit.inputs)))
    live = record(compiled, rows[:1]).live
    assert live is not None
    for row in rows:
        found = in_node(live, f"reluRun(net, {row.tolist()})")
        assert found["outputs"] == net.outputs(row[None])[0].tolist()  # type: ignore[index]


@node
def test_numbers_are_read_as_bits_and_bad_ones_refused():
    live = record(tg.compile(read("adder8"), "relu", form="practical"), np.zeros((1, 16), int)).live
    assert live is not None
    wanted = [200 >> i & 1 for i in range(8)] + [100 >> i & 1 for i in range(8)]
    for typed in ("a=200 b=100", "200 100", "b=100, a=200"):
        assert in_node(live, f"reluBits(net, {json.dumps(typed)})") == wanted
    for typed in ("a=256", "c=1", "a=-1", "1 2 3"):
        with pytest.raises(subprocess.CalledProcessError):
            in_node(live, f"reluBits(net, {json.dumps(typed)})")


def test_a_machine_is_run_in_the_page_only_if_words_are_encoded_cell_by_cell():
    signs = cellwise(tg.compile(find("palindrome").source, "tape", cells=64))
    assert signs is not None
    assert len({tuple(own) for own in signs.values()}) == 3
    two_tapes = TuringMachine(
        {("A", ("0", "0")): Rule(("1", "1"), (1, 1), "B")}, "A", blank="0", tapes=2, name="two tapes"
    )
    assert cellwise(tg.compile(two_tapes, "tape", cells=16)) is None
    assert isinstance(two_tapes.start(), Configuration)


TYPED = {
    "tape": ("increment", {"cells": 64}, "1011", "110", "12", "no symbol 2"),
    "simplex": ("increment", {"longest": 3}, "101", "110", "1111", "no weight for this input"),
    "rcnn": ("increment", {}, "1011", "110", "12", "no symbol 2"),
}


def told(panel: dict, picture: dict) -> set:
    """What is lit, by what each part stands for: drawings of two inputs may number their parts in another
    order. Labels of a ring stand wherever there is room."""
    skipped = "text" if "each a weight" in panel["title"] else ""
    own = [(panel["nodes"][i], value, mark, *text) for i, value, mark, *text in picture["nodes"]]
    return {(*node[:2], value, mark, *text) for node, value, mark, *text in own if node[2] != skipped}


@pytest.mark.slow
@pytest.mark.skipif(installed() is None, reason="there is no Chromium")
@pytest.mark.parametrize("target", TYPED)
def test_another_input_is_typed_and_watched(target, tmp_path):
    """In the page, also through a link; frames light the same parts as those of a recording in Python."""
    name, options, first, other, bad, said = TYPED[target]
    compiled = tg.compile(find(name).source, target, **options)
    path = tmp_path / "page.html"
    path.write_text(page(record(compiled, first)))
    made = record(compiled, other)
    panel, frames = drawing(made)
    with Chrome() as browser:
        browser.open(f"{path.as_uri()}#input={other}&step=2")
        assert "computed in this page" in browser.value("document.getElementById('verdict').textContent")
        own = browser.value("run.recording.frames.map((frame) => frame.panels[0])")
        shown = browser.value("run.recording.panels[0]")
        assert len(own) == len(frames)
        for found, expected in zip(own[1:], frames[1:], strict=True):
            assert found["caption"] == expected["caption"]
            assert told(shown, found) == told(panel, expected)
            assert len(found["edges"]) == len(expected["edges"])
        if target == "rcnn":
            for way, wanted in zip(shown["arrangements"], panel["arrangements"], strict=True):
                assert np.abs(np.array(way["places"]) - wanted["places"]).max() < 0.06
                assert way["font"] == pytest.approx(wanted["font"])
        curve = browser.value("run.recording.frames.map((frame) => frame.curve)")
        assert curve == pytest.approx([frame["curve"] for frame in made.frames], rel=5e-4)  # four digits
        assert browser.value("run.recording.curve_name") == made.curve_name
        assert browser.value("run.now") == 2
        browser.value(f"document.getElementById('live-input').value = '{bad}'")
        browser.value("document.getElementById('live').requestSubmit()")
        assert said in browser.value("document.getElementById('live-said').textContent")
        assert browser.problems == []
