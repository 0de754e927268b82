"""Drawings without a browser: everything has its place and covers nothing else, and what lights up is what
the interpreters say."""

import json
import re
from itertools import combinations, islice, pairwise

import numpy as np
import pytest

import tapegrad as tg
from tapegrad._sources import find, read
from tapegrad.machines.model import GridMachine, GridRule, Rule, TuringMachine
from tapegrad.show import recorder
from tapegrad.show.drawing.layers import arranged
from tapegrad.show.drawing.scene import FIELD, HERE, NEXT, text_width
from tapegrad.show.drawing.states import on_ellipse
from tapegrad.show.page import page
from tapegrad.show.recorder import Recording, compiled_example, record
from tapegrad.targets import all_targets


def drawing(recording: Recording) -> tuple[dict, list[dict]]:
    """The one drawing of a recording, and its frames."""
    [number] = [i for i, panel in enumerate(recording.panels) if panel["kind"] == "drawing"]
    return recording.panels[number], [frame["panels"][number] for frame in recording.frames]


LEAST_FONT = 8.0


def overlap(a, b) -> bool:
    return abs(a[0] - b[0]) < (a[2] + b[2]) / 2 - 0.2 and abs(a[1] - b[1]) < (a[3] + b[3]) / 2 - 0.2


def check(panel: dict, frames: list[dict]) -> None:
    """Numbers name things that exist; boxes lie inside and apart; every frame says something."""
    for way in panel["arrangements"]:
        assert len(way["places"]) == len(panel["nodes"])
        assert len(way["paths"]) == len(panel["edges"])
        for x, y, w, h in way["places"]:
            assert x - w / 2 >= -1
            assert x + w / 2 <= way["width"] + 1
            assert y - h / 2 >= -1
            assert y + h / 2 <= way["height"] + 1
        solid = [
            place
            for place, (_, _, shape) in zip(way["places"], panel["nodes"], strict=True)
            if shape in ("box", "state", "gate", "cell", "pale")
        ]
        assert not any(overlap(a, b) for a, b in combinations(solid, 2))
        for place, (text, _, shape) in zip(way["places"], panel["nodes"], strict=True):
            if shape in ("box", "state"):
                assert text_width(text, LEAST_FONT) <= place[2] + 0.2  # the page makes it smaller to fit
        assert all(len(path) % 6 == 2 for path in (*way["paths"], *way["arcs"]))
        for (a, b), path in zip(panel["arcs"], way["arcs"], strict=True):  # from edge to edge, a pixel apart
            for (x, y, _, h), (at, down) in zip(
                (way["places"][a], way["places"][b]), (path[:2], path[-2:]), strict=True
            ):
                assert at == x
                assert h / 2 - 0.2 <= abs(down - y) <= h / 2 + 1.2
    for frame in frames:
        assert frame["caption"].endswith(".")
        assert all(0 <= i < len(panel["nodes"]) for i, *_ in frame["nodes"])
        assert all(0 <= i < len(panel["edges"]) for i, *_ in frame["edges"])
        for arc, weight, colour in frame["arcs"]:
            assert max(panel["arcs"][arc]) < len(panel["nodes"])
            assert 0 < weight <= 1.001
            assert colour < len(panel["colours"])


@pytest.mark.parametrize("target", [t.name for t in all_targets()])
def test_every_target_draws_its_own_example_in_words_for_everybody(target):
    compiled, inputs = compiled_example(target)
    recording = record(compiled, *inputs)
    assert recording.agreed
    assert recording.ended
    assert {p["side"] for p in recording.panels} == {"source", "network"}
    panel, frames = drawing(recording)
    check(panel, frames)
    assert len({frame["caption"] for frame in frames}) > 1
    assert recording.lead.endswith(".")
    assert [question for question, _ in recording.answers][:2] == [
        "What am I looking at?",
        "What is one step?",
    ]
    assert recording.link.startswith("https://arxiv.org/abs/")
    text = page(recording)
    data = len(json.dumps(recording.to_json(), ensure_ascii=False))
    assert len(text) - data < 100_000
    assert not re.search(r"(src|href)=", text.split("</style>")[0])


@pytest.mark.parametrize("form", ["paper", "practical"])
def test_a_circuit_is_drawn_with_the_values_that_its_wires_have(form):
    circuit = read("adder8")
    bits = np.array([[200 >> i & 1 for i in range(8)] + [100 >> i & 1 for i in range(8)]])
    panel, frames = drawing(record(tg.compile(circuit, "relu", form=form), bits))
    check(panel, frames)
    values = {i: value for i, value, *_ in frames[-1]["nodes"]}
    names = [node[0] for node in panel["nodes"]]
    total = sum(1 << i for i in range(9) if values[names.index(f"out[{i}]")] > 0)
    assert total == 300
    assert "out = 300" in frames[-1]["caption"]
    wires = circuit.wire_values(bits.astype(bool))[:, 0]  # type: ignore[union-attr]
    for node, (_, words, _) in enumerate(panel["nodes"]):
        if held := re.search(r"It holds (the negation of )?wire (\d+) of", words):
            assert (values.get(node, 0) > 0) == (wires[int(held[2])] != bool(held[1]))


@pytest.mark.parametrize("form", [pytest.param("paper", marks=pytest.mark.slow), "practical"])
def test_a_larger_net_is_drawn_by_its_layers(form):
    circuit = read("multiplier12")
    recording = record(tg.compile(circuit, "relu", form=form), np.ones((1, 24), int))
    panel, frames = drawing(recording)
    check(panel, frames)
    assert panel["edges"] == []
    assert [mark for _, _, mark in frames[3]["nodes"]] == [0, 0, 0, HERE]
    assert f"out = {4095 * 4095}" in frames[-1]["caption"]


@pytest.mark.parametrize(("name", "word"), [("busy-beaver-3x2", []), ("increment", ["1011"])])
def test_the_gradient_is_steepest_towards_where_s_goes(name, word):
    """Dots and states of a frame, and the dot that the next stands at; the states are the interpreter's."""
    machine = find(name).source
    assert isinstance(machine, TuringMachine)
    recording = record(tg.compile(machine, "tape", cells=64), *word)
    panel, frames = drawing(recording)
    check(panel, frames)
    states = list(machine.run(machine.start(*word)))
    shapes = [shape for _, _, shape in panel["nodes"]]
    marked = [
        {mark: [i for i, _, m, *_ in frame["nodes"] if m == mark] for mark in (HERE, NEXT, FIELD)}
        for frame in frames
    ]
    for now, after in pairwise(marked[1:]):
        [here] = [i for i in after[HERE] if shapes[i] == "dot"]
        assert now[NEXT] == [here]
    for frame, lit, shown in zip(recording.frames[1:], marked[1:], frames[1:], strict=True):
        boxes = [panel["nodes"][i][0] for i in lit[HERE] if shapes[i] == "state"]
        if boxes:
            assert boxes == [states[frame["source_step"]].state]
            assert ("steepest" in shown["caption"]) == bool(lit[NEXT])
    assert "halted" in frames[-1]["caption"]


def test_the_ring_has_a_dot_for_every_configuration_and_labels_that_can_be_read():
    recording = record(tg.compile(find("busy-beaver-4x2").source, "simplex", inputs=[[]]))
    panel, frames = drawing(recording)
    check(panel, frames)
    count = sum(node[2] == "dot" for node in panel["nodes"])
    assert count == 108
    for frame in frames:
        for way in panel["arrangements"]:
            labels = [
                way["places"][i] for i, _, _, *text in frame["nodes"] if count <= i < 2 * count and text[0]
            ]
            assert len(labels) >= 20
            assert not any(overlap(a, b) for a, b in combinations(labels, 2))
    for number, frame in enumerate(frames[1:-1]):
        assert next(i for i, _, mark, *_ in frame["nodes"] if mark == HERE) == number


def test_attention_copies_from_the_last_write():
    machine = find("busy-beaver-3x2").source
    assert isinstance(machine, TuringMachine)
    panel, frames = drawing(record(tg.compile(machine, "transformer", form="paper", steps=32)))
    states = list(machine.run(machine.start()))
    for now, frame in enumerate(frames[1:]):
        writers = [step for step in range(1, now + 1) if states[step - 1].heads[0] == states[now].heads[0]]
        looks = [(*panel["arcs"][arc], colour) for arc, _, colour in frame["arcs"]]
        copied = [b for a, b, colour in looks if colour == 0 and a == now]
        # What is written in the step itself is not looked up.
        assert copied == [writer for writer in writers[-1:] if writer < now]


def test_flipped_cells_are_those_that_the_learner_changes():
    compiled, inputs = compiled_example("emulator")
    panel, frames = drawing(record(compiled, *inputs))
    cells = [i for i, (_, _, shape) in enumerate(panel["nodes"]) if shape == "pale"]
    states = list(compiled.source.run(compiled.source.start(*inputs)))
    assert len(cells) == len(states[0].memory)
    for frame, state, after in zip(frames, states, states[1:], strict=False):
        flips = [place for place, (a, b) in enumerate(zip(state.memory, after.memory, strict=True)) if a != b]
        assert sorted(i - cells[0] for i, _, mark, *_ in frame["nodes"] if mark == NEXT) == flips
        assert sorted(panel["arcs"][arc][1] - cells[0] for arc, *_ in frame["arcs"]) == flips
        ones = {i - cells[0] for i, value, *_ in frame["nodes"] if i in cells and value < 0}
        assert ones == {place for place, bit in enumerate(state.memory) if bit}


def test_the_plane_is_the_machines_and_the_filter_sees_nine_cells():
    compiled, inputs = compiled_example("rcnn")
    machine = compiled.source
    assert isinstance(machine, GridMachine)
    panel, frames = drawing(record(compiled, *inputs))
    spots = [tuple(map(int, re.findall(r"-?\d+", words))) for _, words, _ in panel["nodes"]]
    for frame, state in zip(frames, machine.run(machine.start(*inputs)), strict=True):
        assert {spots[i] for i, value, *_ in frame["nodes"] if value} == set(state.cells)
        here = [(spots[i], text) for i, _, mark, *text in frame["nodes"] if mark == HERE]
        assert [spot for spot, _ in here] == [state.head, ()]
        assert here[1][1] == [state.state]  # over its column
        assert [i for i, *_ in frame["nodes"] if not spots[i]] == [
            spots.index(()) + state.head[1] - spots[0][1]
        ]
        assert sum(mark == FIELD for _, _, mark, *_ in frame["nodes"]) == 8


@pytest.mark.slow
def test_a_window_on_a_large_grid_follows_the_head():
    """A machine that walks down and to the right, a hundred cells."""
    rules = {("a", "0"): GridRule("1", "down", "b"), ("b", "0"): GridRule("1", "right", "a")}
    machine = GridMachine(rules, "a", blank="0")
    recording = record(tg.compile(machine, "rcnn", margin=160), [], steps=150)
    panel, frames = drawing(recording)
    check(panel, frames)
    assert "60 of 78 rows" in panel["note"]
    states = list(islice(machine.run(machine.start([])), 151))
    for frame, shown in zip(recording.frames, frames, strict=True):
        state = states[frame["step"]]
        heads = [i for i, _, mark, *_ in shown["nodes"] if mark == HERE and i < 3600]
        assert len(heads) == 1
        row, column = divmod(heads[0], 60)
        texts = {i: text[0] for i, _, _, *text in shown["nodes"] if i < 3600 and text and text[0]}
        # Relative to the head, what is shown is what the machine has written.
        seen = {(i // 60 - row, i % 60 - column) for i in texts}
        written = {(r - state.head[0], c - state.head[1]) for r, c in state.cells}
        assert seen == {(r, c) for r, c in written if 0 <= row + r < 60 and 0 <= column + c < 60}


def test_a_long_text_moves_through_a_window():
    machine = find("busy-beaver-4x2").source
    panel, frames = drawing(record(tg.compile(machine, "decoder", tokens=2000), steps=60))
    check(panel, frames)
    assert "at a time" in panel["note"]
    assert len(panel["nodes"]) == max(len(frame["nodes"]) for frame in frames)


# Arranging.


def test_layers_are_ordered_without_crossings_where_that_is_possible():
    """Two ladders whose nodes are given in a bad order: each becomes straight."""
    layer_of = [0, 0, 1, 1, 2, 2]
    edges = [(0, 3), (1, 2), (3, 4), (2, 5), (0, 4)]
    laid = arranged(layer_of, [10.0] * 6, edges, 5.0)
    order = [
        sorted((n for n in range(6) if layer_of[n] == layer), key=laid.across.__getitem__)
        for layer in range(3)
    ]
    chains = [[0, 3, 4], [1, 2, 5]]
    assert [[layer.index(chain[i]) for i, layer in enumerate(order)] for chain in chains] in (
        [[0] * 3, [1] * 3],
        [[1] * 3, [0] * 3],
    )
    assert len(laid.routes[-1]) == 3
    for layer in order:
        for a, b in pairwise(layer):
            assert laid.across[b] - laid.across[a] >= 15.0 - 1e-9


def test_any_number_of_states_fits_on_an_ellipse():
    for count in range(1, 25):
        sizes = [(60.0 + 10 * (i % 4), 40.0) for i in range(count)]
        edges = [(i, (i * 7 + 1) % count) for i in range(count)]
        laid = on_ellipse(sizes, edges, ["0→1 R"] * count, 780.0, 500.0, 12.0)
        assert not any(overlap(a, b) for a, b in combinations(laid.places, 2))
        for x, y in laid.labels:
            assert 0 <= x <= laid.width
            assert 0 <= y <= laid.height


def test_a_network_without_layers_is_shown():
    """Doubling moves bits, and computes nothing: outputs are inputs."""
    circuit = tg.trace(lambda a: a + a, tg.UInt(4))
    made = record(tg.compile(circuit, "relu"), np.array([[1, 0, 1, 0]]))
    assert made.agreed
    panel, frames = drawing(made)
    check(panel, frames)
    assert "out = 10" in frames[-1]["caption"]


def test_names_in_neighbouring_layers_lie_apart_and_a_functions_values_stand_once():
    def grade(points: tg.UInt(7), bonus: tg.UInt(3)):  # pyright: ignore[reportInvalidTypeForm]
        return tg.where(points + bonus > 100, 100, points + bonus)

    recording = record(tg.compile(grade, "relu"), 97, 5)
    panel, _ = drawing(recording)
    places = panel["arrangements"][0]["places"]
    named = [place for place, node in zip(places, panel["nodes"], strict=True) if node[0]]
    assert len(named) > 10
    assert not any(overlap(a, b) for a, b in combinations(named, 2))
    assert [panel["title"] for panel in recording.panels if panel["side"] == "source"] == [
        "Inputs",
        "Outputs",
    ]


def branching(count: int) -> TuringMachine:
    """A machine with so many states: from each, a 0 leads to the next and a 1 seven further."""
    rules = {
        (f"q{n}", (symbol,)): Rule((symbol,), (1,), f"q{min(count - 1, n + (7 if symbol == '1' else 1))}")
        for n in range(count - 1)
        for symbol in "01"
    }
    return TuringMachine(rules, "q0", blank="0")


def test_a_machine_with_one_symbol_is_drawn():
    there, back = Rule(("_",), (1,), "b"), Rule(("_",), (-1,), "a")
    compiled = tg.compile(TuringMachine({("a", ("_",)): there, ("b", ("_",)): back}, "a"), "tape", cells=16)
    recording = record(compiled, steps=8)
    assert recording.agreed
    check(*drawing(recording))
    assert recording.weights == str(compiled.counts)


@pytest.mark.parametrize("count", [21, 300, 3_000, pytest.param(30_000, marks=pytest.mark.slow)])
def test_a_machine_of_any_size_is_drawn_around_its_state(count):
    machine = branching(count)
    word = "0110100"
    recording = record(tg.compile(machine, "tape", cells=64), word, steps=12)
    assert recording.agreed
    panel, frames = drawing(recording)
    check(panel, frames)
    assert len(panel["nodes"]) < 100
    data = len(json.dumps(recording.to_json(), ensure_ascii=False))
    assert data < 200_000
    states = list(islice(machine.run(machine.start(word)), 14))
    number = {state: place for place, state in enumerate(machine.states)}
    assert f"{count:,} states" in panel["note"]
    for frame, shown in zip(recording.frames[1:], frames[1:], strict=True):
        state = states[frame["source_step"]]
        rule = machine.rules.get((state.state, machine.read(state)))
        marked = {
            mark: [text for _, _, m, *text in shown["nodes"] if m == mark and text] for mark in (HERE, NEXT)
        }
        assert [state.state] in marked[HERE]
        assert marked[NEXT] == ([[rule.state]] if rule else [])
        texts = {i: text[0] for i, _, _, *text in shown["nodes"] if text}
        for arc, _, _ in shown["arcs"]:
            a, b = (texts[node] for node in panel["arcs"][arc])
            assert b in {rule.state for (own, _), rule in machine.rules.items() if own == a}
        visited = {state.state for state in states[: frame["source_step"] + 1]}
        cells = [i for i, node in enumerate(panel["nodes"]) if node[2] == "cell"]
        lit = [i - cells[0] for i, value, *_ in shown["nodes"] if i in cells and value]
        assert sorted(lit) == sorted({number[q] * len(cells) // count for q in visited})


def test_a_ring_has_the_neighbours_of_the_state_inside():
    machine = branching(40)
    recording = record(tg.compile(machine, "simplex", inputs=[["0110100"]]), "0110100")
    panel, frames = drawing(recording)
    check(panel, frames)
    count = sum(node[2] == "dot" for node in panel["nodes"])
    for frame in frames[1:-1]:
        for way in panel["arrangements"]:
            labels = [way["places"][i] for i, *_, text in frame["nodes"] if count <= i < 2 * count and text]
            assert not any(overlap(a, b) for a, b in combinations(labels, 2))
        names = {text[0] for i, _, _, *text in frame["nodes"] if text and i >= 2 * count}
        assert names & set(machine.states)


def test_the_labels_of_long_states_lie_outside_the_ring_and_apart():
    recording = record(tg.compile("palindrome", "simplex", inputs=[["abba"]]), "abba")
    panel, frames = drawing(recording)
    count = sum(node[2] == "dot" for node in panel["nodes"])
    for way in panel["arrangements"]:
        for frame in frames:
            shown = [i for i, *_, text in frame["nodes"] if count <= i < 2 * count and text]
            assert not any(overlap(way["places"][a], way["places"][b]) for a, b in combinations(shown, 2))
            for label in shown:
                assert not any(overlap(way["places"][label], way["places"][dot]) for dot in range(count))


def test_a_page_that_would_be_large_has_fewer_frames(monkeypatch):
    compiled, inputs = compiled_example("rcnn")
    whole = record(compiled, *inputs)
    size = len(json.dumps([frame["panels"] for frame in whole.frames]))
    monkeypatch.setattr(recorder, "MOST_DATA", size / 3)
    monkeypatch.setattr(recorder, "LEAST_FRAMES", 2)
    few = record(compiled, *inputs)
    assert len(json.dumps([frame["panels"] for frame in few.frames])) < size / 2
    last = whole.frames[-1]["step"]
    assert [frame["step"] for frame in few.frames] == sorted({*range(0, last, 4), last})
    assert any(f"Every 4th of {last} steps is shown" in note for note in few.notes)
    assert few.agreed
