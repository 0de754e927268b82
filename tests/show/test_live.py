"""Runs that the page computes by itself, equal to those of the engine in Python: the page's own file, run by
Node, and the whole page in Chromium."""

import json
import shutil
import subprocess
from pathlib import Path

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
from tapegrad.targets.tape.net import TapeNet
from tests.show.chrome import Chrome, installed
from tests.show.test_drawings import drawing

SCRIPT = Path(page_module.__file__).parent / "assets" / "live.js"
node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")


def in_node(live: dict, call: str) -> list:
    """What a call gives, of the functions in the page's file, on these arrays."""
    program = f"const {{tapeRun, reluRun, reluBits}} = require({json.dumps(str(SCRIPT))});"
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
@pytest.mark.slow
@pytest.mark.parametrize("name", ["adder8", "comparator4", "multiplier4", "popcount8"])
def test_a_relu_network_in_the_page_is_that_of_the_engine(name):
    circuit = read(name)
    assert isinstance(circuit, Circuit)
    compiled = tg.compile(circuit, "relu", form="compact")
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
    live = record(tg.compile(read("adder8"), "relu", form="compact"), np.zeros((1, 16), int)).live
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


@pytest.mark.slow
@pytest.mark.skipif(installed() is None, reason="there is no Chromium")
def test_another_input_is_typed_and_watched(tmp_path):
    """In the page, also through a link; frames light the same parts as those of a recording in Python."""
    compiled = tg.compile(find("increment").source, "tape", cells=64)
    path = tmp_path / "page.html"
    path.write_text(page(record(compiled, "1011")))
    panel, frames = drawing(record(compiled, "110"))
    with Chrome() as browser:
        browser.open(f"{path.as_uri()}#input=110&step=2")
        assert "computed in this page" in browser.value("document.getElementById('verdict').textContent")
        own = browser.value("run.recording.frames.map((frame) => frame.panels[0])")
        assert len(own) == len(frames)
        for found, expected in zip(own[1:], frames[1:], strict=True):
            assert {tuple(node) for node in found["nodes"]} == {tuple(node[:3]) for node in expected["nodes"]}
            assert found["edges"] == expected["edges"]
            assert found["caption"] == expected["caption"]
        assert browser.value("run.now") == 2
        browser.value("document.getElementById('live-input').value = '12'")
        browser.value("document.getElementById('live').requestSubmit()")
        assert "no symbol 2" in browser.value("document.getElementById('live-said').textContent")
        assert browser.problems == []
    assert panel["kind"] == "drawing"
