"""Circuits and programs on a transformer, as the player draws them: bits are those of the source, and arrows
lead to the token of the cycle and to the step that wrote a word last, as the interpreters say."""

import re
from collections import Counter

import numpy as np
import pytest

import tapegrad as tg
from tapegrad._sources import find, read
from tapegrad.circuits.clocked.model import SequentialCircuit
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.networks.heads import Watching
from tapegrad.programs.library import READY
from tapegrad.show import views_memory
from tapegrad.show.drawing.scene import FIELD, HERE
from tapegrad.show.recorder import record
from tapegrad.show.views_relu import SIGNS
from tests.show.test_drawings import check, drawing


def lit(panel: dict, frame: dict) -> dict[str, float]:
    """The values of the boxes on the last layer, which this step hands on, by name."""
    values = {i: value for i, value, *_ in frame["nodes"]}
    handed = "as this step hands it on."
    return {
        text: values.get(i, 0) for i, (text, words, _) in enumerate(panel["nodes"]) if words.endswith(handed)
    }


def looked_at(panel: dict, frame: dict, colour: int) -> list[str]:
    """The texts that arrows of a colour lead to."""
    texts = {i: rest[0] for i, _, _, *rest in frame["nodes"] if rest}
    return [texts[panel["arcs"][arc][1]] for arc, _, own in frame["arcs"] if own == colour]


def test_a_circuit_is_drawn_gate_by_gate_and_layer_by_layer():
    circuit = read("adder8")
    assert isinstance(circuit, Circuit)
    bits = [200 >> i & 1 for i in range(8)] + [100 >> i & 1 for i in range(8)]
    recording = record(tg.compile(circuit, "transformer", steps=1), bits)
    assert recording.agreed
    assert not recording.undrawn
    panel, frames = drawing(recording)
    check(panel, frames)
    drawn = Counter(text for text, _, shape in panel["nodes"] if shape == "gate")
    kinds = Counter(SIGNS[kind] for kind in map(Gate, circuit.kinds.tolist()))
    assert kinds - drawn == Counter()  # and one for the number of the cycle
    assert sum((drawn - kinds).values()) <= 2
    assert len(frames) > 15
    assert len({frame["caption"] for frame in frames}) == len(frames)
    out = lit(panel, frames[-1])
    assert sum(1 << i for i in range(9) if out[f"out[{i}]"]) == 300
    assert "out = 300" in frames[-1]["caption"]
    assert looked_at(panel, frames[-1], views_memory.READS) == ["a=200, b=100"]
    # A layer at a time is circled, and nothing comes before what it is computed from.
    computed: set[int] = set()
    for frame in frames[1:]:
        computed |= {i for i, _, mark, *_ in frame["nodes"] if mark == HERE}
    assert computed >= {i for i, node in enumerate(panel["nodes"]) if node[2] == "gate"}


def test_cycles_of_a_clock_read_their_tokens_and_hand_latches_on():
    circuit = find("counter8").source
    assert isinstance(circuit, SequentialCircuit)
    trace = [[1, 0], [1, 0], [0, 0], [1, 0], [0, 1], [1, 0]]
    recording = record(tg.compile(circuit, "transformer", steps=len(trace)), trace)
    assert recording.agreed
    panel, frames = drawing(recording)
    check(panel, frames)
    states = list(circuit.run(circuit.start(trace)))
    whole = {frame["step"]: shown for frame, shown in zip(recording.frames, frames, strict=True)}
    assert sorted(whole) == list(range(len(trace) + 1))
    for cycle, (row, state) in enumerate(zip(trace, states[1:], strict=True), 1):
        frame = whole[cycle]
        values = lit(panel, frame)
        latches = tuple(int(values[f"{name}′"] > 0) for name in circuit.latches)
        assert latches == state.latches
        outputs = [int(values[name] > 0) for name in circuit.outputs]
        assert outputs == state.outputs[-1].tolist()
        tokens = [text.partition(":")[0] for text in looked_at(panel, frame, views_memory.READS)]
        assert tokens == ([str(cycle)] if any(row) else [])


def test_a_program_reads_words_from_the_steps_that_wrote_them_last():
    hello = READY["subleq-hello"]
    program = hello.build()
    compiled = tg.compile(program, "transformer", steps=32, input=1, output=4)
    recording = record(compiled, hello.example)
    panel, frames = drawing(recording)
    check(panel, frames)
    states = list(program.run(program.start(hello.example)))
    last: dict[int, int] = {}
    arrows = 0
    for frame, shown in zip(recording.frames[1:], frames[1:], strict=True):
        step = frame["step"]
        before, after = states[step - 1], states[step]
        memory, pc = before.memory, before.pc
        reads = {pc, pc + 1, pc + 2, memory[pc], memory[pc + 1]}
        expected = {last[place] for place in reads if place in last}
        found = {int(text.partition(":")[0]) for text in looked_at(panel, shown, views_memory.COPIES)}
        assert found == expected
        arrows += len(found)
        for place, (a, b) in enumerate(zip(memory, after.memory, strict=True)):
            if a != b:
                last[place] = step
                assert re.search(rf"to ram\[{place:x}\]", shown["caption"])
    assert arrows > 10


def test_tokens_that_are_looked_at_are_always_in_view():
    """There are more words of memory than are shown at once."""
    hello = READY["subleq-hello"]
    recording = record(tg.compile(hello.build(), "transformer", steps=32, input=1, output=4), hello.example)
    panel, frames = drawing(recording)
    cells = [i for i, (_, words, _) in enumerate(panel["nodes"]) if words == "A token of the input."]
    assert len(cells) == views_memory.BELOW
    assert any("looked at lately" in note for note in recording.notes)
    for frame in frames:
        ends = {panel["arcs"][arc][1] for arc, _, colour in frame["arcs"] if colour == views_memory.READS}
        assert ends == {i for i, _, mark, *_ in frame["nodes"] if i in cells and mark == FIELD}


def test_a_machine_with_two_tapes_is_drawn():
    machine = find("copying").source
    recording = record(tg.compile(machine, "transformer", form="practical", steps=64), "ab")
    panel, frames = drawing(recording)
    check(panel, frames)
    assert recording.agreed
    assert "halts" in frames[-1]["caption"]


def test_a_large_run_shows_its_positions_alone(monkeypatch):
    monkeypatch.setattr(views_memory, "MOST_WATCHED", 0)
    circuit = find("counter8").source
    recording = record(tg.compile(circuit, "transformer", steps=3), [[1, 0]] * 3)
    panel, frames = drawing(recording)
    check(panel, frames)
    assert not any(frame["arcs"] for frame in frames)
    assert len({frame["caption"] for frame in frames}) == 4
    assert any("not computed for this page" in note for note in recording.notes)


def test_what_is_drawn_must_be_what_the_net_has_computed(monkeypatch):
    """A decoder that is recomputed with another bit is refused, not drawn."""
    step = Watching.step

    def wrong(self):
        seen = step(self)
        first = np.arange(len(seen.output)) == 0
        return seen._replace(output=np.where(first, 1 - seen.output, seen.output))

    monkeypatch.setattr(Watching, "step", wrong)
    with pytest.raises(tg.TapegradError, match="cannot be recomputed"):
        record(tg.compile("adder8", "transformer"), [1] * 16)
