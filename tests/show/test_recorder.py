"""Frames of a recording against the plain interpreters, run once more and apart from the recorder."""

import re
from dataclasses import replace
from itertools import pairwise
from typing import cast

import numpy as np
import pytest

import tapegrad as tg
from tapegrad._compile import compile_for
from tapegrad._sources import find, read
from tapegrad.machines.model import Configuration, Rule, TuringMachine
from tapegrad.programs.library import READY
from tapegrad.show.recorder import Recording, compiled_source, record
from tapegrad.show.views import VIEWS
from tapegrad.targets import all_targets
from tapegrad.targets.emulator.net import PracticalNet


def panel(recording: Recording, title: str) -> int:
    """The number of the panel with this title."""
    return next(i for i, p in enumerate(recording.panels) if p["title"] == title)


def line(recording: Recording, title: str, frame: dict, row: int = 0) -> dict[int, object]:
    """The cells of one row that differ from the default, by column."""
    shown = frame["panels"][panel(recording, title)]
    return {shown["first"] + c: value for r, c, value in shown["cells"] if r == row}


def head(recording: Recording, title: str, frame: dict) -> int:
    shown = frame["panels"][panel(recording, title)]
    return shown["first"] + shown["marks"][0][1]


def states(machine: TuringMachine, *words: str) -> list[Configuration]:
    return list(machine.run(machine.start(*words)))


@pytest.mark.parametrize("name", ["tape", "simplex", "transformer"])
def test_a_machine_and_its_net_are_where_the_interpreter_is(name):
    machine = find("busy-beaver-3x2").source
    assert isinstance(machine, TuringMachine)
    options = {"tape": {"cells": 32}, "simplex": {"inputs": [[]]}, "transformer": {"steps": 32}}[name]
    recording = record(tg.compile(machine, name, **options))
    expected = states(machine)
    assert recording.agreed
    assert recording.ended
    begun = [] if name == "transformer" else [0]  # weights are shown before the first step of training
    assert [f["source_step"] for f in recording.frames] == [*begun, *range(len(expected))]
    for frame in recording.frames:
        state = expected[frame["source_step"]]
        assert line(recording, "Tape", frame) == state.tapes[0]
        assert head(recording, "Tape", frame) == state.heads[0]
        assert dict(frame["panels"][0])["state"] == state.state


def test_tape_and_head_weights_are_the_tape_and_the_head():
    machine = find("increment").source
    assert isinstance(machine, TuringMachine)
    compiled = tg.compile(machine, "tape", cells=32)
    recording = record(compiled, "1011")
    lowered = compiled.lowered
    assert isinstance(lowered, TuringMachine)
    expected = list(lowered.run(compiled.encode(machine.start("1011"))))
    for frame, state in zip(recording.frames[1:], expected, strict=True):
        for tape in range(lowered.tapes):
            title = f"Weights of tape {tape + 1}"
            assert line(recording, title, frame, 0) == dict.fromkeys(state.tapes[tape], 1)
            assert line(recording, title, frame, 1) == {state.heads[tape]: 1}
        vertices = recording.panels[panel(recording, "State weights s")]["names"]
        [[vertex, weight]] = frame["panels"][panel(recording, "State weights s")]
        assert weight == 1
        assert vertices[vertex].startswith(state.state)


def test_the_loss_of_simplex_falls_at_every_step():
    recording = record(tg.compile(find("busy-beaver-3x2").source, "simplex", inputs=[[]]))
    losses = [frame["curve"] for frame in recording.frames[1:]]
    assert all(after < before for before, after in pairwise(losses))


@pytest.mark.parametrize("form", ["paper", "practical"])
def test_relu_shows_every_layer_and_the_sum(form):
    recording = record(tg.compile(read("adder8"), "relu", form=form), _bits(100, 55))
    last = recording.frames[-1]
    assert dict(last["panels"][panel(recording, "Outputs")]) == {"out": "155"}
    signs = [value for _, _, value in last["panels"][-2]["cells"]]
    assert sum(1 << i for i, value in enumerate(signs) if value > 0) == 155
    assert all("·" in dict(f["panels"][1]).values() for f in recording.frames[:-1])


def _bits(a: int, b: int) -> np.ndarray:
    return np.array([[a >> i & 1 for i in range(8)] + [b >> i & 1 for i in range(8)]])


def test_attention_finds_the_last_write_to_a_cell():
    machine = find("busy-beaver-3x2").source
    assert isinstance(machine, TuringMachine)
    recording = record(tg.compile(machine, "transformer", form="paper", steps=32))
    expected = states(machine)
    title = "Attention to past steps"
    copying = len(recording.panels[panel(recording, title)]["rows"]) - 1
    for frame in recording.frames[2:]:
        now = frame["source_step"]
        here = expected[now].heads[0]
        # Step i of the decoder writes at the head of step i - 1 of the machine.
        writers = [step for step in range(1, now + 1) if expected[step - 1].heads[0] == here]
        wanted = {writers[-1]: 1} if writers else {-1: 1}
        assert line(recording, title, frame, copying) == wanted


def test_memory_cells_of_the_emulator_are_the_learners_memory():
    example = next(t for t in all_targets() if t.name == "emulator").examples()[0]
    compiled = tg.compile(example.source, "emulator", **example.options)
    recording = record(compiled, *example.inputs)
    expected = list(example.source.run(example.source.start(*example.inputs)))
    assert len(recording.frames) == len(expected)
    for frame, state in zip(recording.frames, expected, strict=True):
        shown = frame["panels"][panel(recording, "Memory cells as weights")]["cells"]
        negative = {16 * r + c for r, c, value in shown if value < 0}
        assert negative == {i for i, bit in enumerate(state.memory) if bit}


def test_a_long_run_is_thinned_and_says_so():
    machine = find("busy-beaver-4x2").source
    assert isinstance(machine, TuringMachine)
    recording = record(tg.compile(machine, "tape", cells=64), frames=20)
    expected = states(machine)
    assert len(recording.frames) <= 21
    assert recording.frames[0]["step"] == 0
    assert recording.frames[-1]["step"] == recording.steps == 108
    assert any("Every 8th of 108 steps" in note for note in recording.notes)
    for frame in recording.frames:
        assert line(recording, "Tape", frame) == expected[frame["source_step"]].tapes[0]


def test_a_large_net_is_looked_at_where_it_is_shown():
    """By the fast engine, whose steps in between are taken at once; `agreed` is not there for nothing."""
    program = READY["rv32-sort"].build()
    compiled = compile_for(program, "emulator", (b"dcba",), 1_000)
    expected = list(program.run(program.start(b"dcba")))
    recording = record(compiled, b"dcba", frames=20, engine="fast")
    assert recording.agreed
    assert recording.ended
    assert recording.steps == len(expected) - 1
    assert f"Every 8th of {recording.steps} steps is shown and compared." in recording.notes
    assert [frame["step"] for frame in recording.frames[:3]] == [0, 8, 16]
    assert recording.leaps
    fields, code = panel(recording, "Program"), panel(recording, "Instructions, as they are loaded")
    table = list(zip(recording.panels[code]["rows"], recording.panels[code]["entries"], strict=True))
    for frame in recording.frames:
        state = expected[frame["step"]]
        assert frame["source_step"] == frame["step"]
        shown = dict(frame["panels"][fields])
        assert shown["pc"].split()[0] == f"{state.pc:#x}"
        (current,) = (entry for at, (entry,) in table if int(at, 16) == state.pc)
        assert shown["next"] == ("·" if state.trap else current)
    net = cast(PracticalNet, compiled.net)
    broken = replace(compiled, net=replace(net, weights=np.abs(net.weights)))
    assert not record(broken, b"dcba", frames=20, engine="fast").agreed


def test_a_run_that_is_cut_off_says_so():
    recording = record(tg.compile(find("busy-beaver-4x2").source, "tape", cells=64), steps=10)
    assert not recording.ended
    assert recording.steps == 10
    assert any("cut off after 10 steps" in note for note in recording.notes)


def test_a_net_that_goes_wrong_is_found_out(monkeypatch):
    compiled = tg.compile(find("busy-beaver-3x2").source, "tape", cells=32)
    right = type(compiled.net).decode

    def wrong(net, carry):
        state = right(net, carry)
        return state if state is None or carry.steps != 5 else replace(state, tapes=({99: "1"},))

    monkeypatch.setattr(type(compiled.net), "decode", wrong)
    recording = record(compiled)
    assert not recording.agreed
    assert [f["step"] for f in recording.frames if not f["agrees"]] == [5]


def test_a_net_that_stops_early_is_found_out(monkeypatch):
    compiled = tg.compile(find("busy-beaver-3x2").source, "tape", cells=32)
    monkeypatch.setattr(type(compiled.net), "done", lambda net, carry: carry.steps >= 5)
    recording = record(compiled)
    assert all(f["agrees"] for f in recording.frames)
    assert not recording.agreed


def test_a_target_without_a_view_shows_what_it_decodes_to(monkeypatch):
    monkeypatch.delitem(VIEWS, ("tape", ""))
    recording = record(tg.compile(find("busy-beaver-3x2").source, "tape", cells=32))
    shown = dict(recording.frames[-1]["panels"][panel(recording, "Decoded from the network")])
    assert "tape '11111'" in shown["state"]


def test_the_gradient_of_the_next_step_flips_what_the_instruction_changes():
    """Instructions and registers on the left; on the right the cells that flip, by name, and no other weight
    that changes."""
    program = READY["subleq-hello"].build()
    compiled = compile_for(program, "emulator", (b"",), 100)
    recording = record(compiled, b"", engine="fast")
    titles = [panel["title"] for panel in recording.panels]
    assert titles[:1] == ["Program"]
    assert "Instructions, as they are loaded" in titles
    place = titles.index("Gradient of the next step")
    net = cast(PracticalNet, compiled.net)
    states = [compiled.encode(state).memory for state in program.run(program.start())]
    assert len(states) == len(recording.frames) == 21
    for before, after, frame in zip(states, states[1:], recording.frames, strict=False):
        fields = dict(frame["panels"][place])
        flips = [name for name, a, b in zip(net.names, before, after, strict=False) if a != b]
        parts = (part.partition(": ") for part in fields["flips"].split("; "))
        shown = [f"{word}[{bit}]" for word, _, bits in parts for bit in bits.split(", ")]
        assert sorted(shown) == sorted(flips)
        assert fields["changes"] == f"{len(flips)}, all of them cells"
        touched, edges = (int(number.replace(",", "")) for number in re.findall(r"[\d,]+", fields["touches"]))
        assert edges == net.graph.edges
        assert touched == 6 * len(net.cells) + 1 + 4 * len(flips)  # the output's, three of each gate, a cell
        marked = frame["panels"][titles.index("Memory cells as weights")]["marks"]
        assert len(marked) == sum(net.names.index(name) < 512 for name in flips)
    assert dict(recording.frames[-1]["panels"][place])["flips"] == "·"


def test_a_run_that_takes_long_is_shown_as_far_as_it_came():
    compiled = tg.compile(find("busy-beaver-3x2").source, "tape", cells=32)
    recording = record(compiled, seconds=-1)
    assert (recording.steps, recording.ended, recording.agreed) == (0, False, True)
    assert "cut off after 0 steps" in recording.notes[-1]
    assert "seconds" in recording.notes[-1]
    assert record(compiled, seconds=600).ended


def test_a_circuit_without_an_input_is_shown_on_one_of_its_own():
    compiled, inputs = compiled_source(find("adder8"), "relu", None, {}, 100)
    bits = np.asarray(inputs[0])
    assert 0 < bits.sum() < bits.size
    assert record(compiled, *inputs).agreed


def test_a_machine_is_unrolled_for_few_steps_unless_more_are_asked_for():
    endless = find("1RA1RA")
    for settings, steps in (({}, 100), ({"steps": 7}, 7)):
        compiled, _ = compiled_source(endless, "relu", None, settings, 2_000)
        assert compiled.passes[0].covers == steps


def test_the_curve_is_the_first_that_is_not_flat():
    """A machine that writes nothing new leaves the place of its head."""
    still = TuringMachine(
        {("A", ("1",)): Rule(("1",), (1,), "A"), ("A", ("_",)): Rule(("_",), (-1,), "B")}, "A", name="walk"
    )
    recording = record(tg.compile(still, "rcnn", margin=4), "111")
    assert recording.curve_name == "column of the head"
    assert [frame["curve"] for frame in recording.frames] == [0, 1, 2, 3, 2]


@pytest.mark.slow
def test_a_run_of_any_length_is_shown_on_simplex_where_its_net_fits() -> None:
    """More than the 10,000 steps that a net is made for if nothing is known of its run."""
    compiled, inputs = compiled_source(find("rasp-planted"), "simplex", None, {}, steps=20)
    assert compiled.options["steps"] > 10_000
    assert record(compiled, *inputs, steps=20).agreed
