"""Learning algorithms as a kind of source, and how they are shown."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._files import content_of
from tapegrad._panels import Cells, CellsFrame, Fields, Panel
from tapegrad.circuits.kind import MOST_BITS, circuit_from_json, circuit_to_json, summary
from tapegrad.circuits.sampler import random_circuit
from tapegrad.errors import InputError
from tapegrad.learners.library import READY, example_samples, ready
from tapegrad.learners.model import CircuitLearner, Learner, LearnerState
from tapegrad.source import Arrays, Call, Inputs, Lowering, Option, Ready, ReadyBy, SourceKind, shortened

# How learners are shown: their memory in a line, as JSON and as panels of the player.


BITS_IN_A_ROW = 16
WIDEST = 400
"""Bits of the memory that are written out in a line."""


def state_json(learner: Learner, state: LearnerState) -> dict[str, Any]:
    """Memory, samples seen and the last answer."""
    return {"memory": list(state.memory), "samples": state.position, "answer": state.answer}


def state_text(learner: Learner, state: LearnerState) -> str:
    """The same in two lines."""
    memory = shortened("".join(map(str, state.memory)), WIDEST)
    answer = "still learning" if state.answer is None else f"answered {state.answer} to the last"
    return f"after {state.position:,} samples, {answer}\nmemory {memory}"


class LearnerView:
    """Memory of a learner, and the sample it was shown last."""

    def __init__(self, learner: Learner) -> None:
        self.count = min(learner.cells, MOST_BITS)
        self.names = learner.circuit.inputs[: self.count]
        note = "" if learner.cells <= MOST_BITS else f"{MOST_BITS} of {learner.cells:,} bits are shown."
        self.panels: list[Panel] = [
            Fields("Last sample"),
            Cells(
                "Memory",
                "text",
                rows=bit_rows(self.count),
                default=("0",),
                columns=(0, min(BITS_IN_A_ROW, max(1, self.count)) - 1),
                note=note,
                column_name="bit",
                explain=lambda r, c: bit_word(self.names, r, c),
            ),
        ]

    def frame(self, state: LearnerState) -> list[Any]:
        fields = {"sample": f"{state.position:,} of {len(state.samples):,}", "x": "·", "label": "·"}
        if state.position:
            x, y, _, guess = state.samples[state.position - 1]
            fields |= {"x": "".join(map(str, x[:64])), "label": str(y)}
            fields["learner"] = f"guesses {guess}" if state.answer is None else f"answers {state.answer}"
        ones = [(*divmod(i, BITS_IN_A_ROW), "1") for i, bit in enumerate(state.memory[: self.count]) if bit]
        return [fields, CellsFrame(ones, widths=bit_widths(self.count))]


def bit_rows(count: int) -> tuple[str, ...]:
    """Labels of rows of sixteen bits: the number of the first bit in each."""
    return tuple(str(first) for first in range(0, max(1, count), BITS_IN_A_ROW))


def bit_widths(count: int) -> list[int]:
    """The last row may be shorter."""
    return [min(BITS_IN_A_ROW, count - first) for first in range(0, max(1, count), BITS_IN_A_ROW)]


def bit_word(names: tuple[str, ...], row: int, column: int) -> str:
    """A bit of the memory by name."""
    number = row * BITS_IN_A_ROW + column
    return f"Bit {number} of the learner's memory, {names[number]!r}." if number < len(names) else ""


RANDOM_SAMPLES = 64
SAMPLES_FOR_MACHINES = 8
"""A learner that runs as a machine takes many steps for each sample, so fewer are drawn."""


def _to_json(learner: Learner) -> tuple[dict[str, Any], Arrays]:
    """A learner is saved as its circuit; functions are not saved."""
    data, arrays = circuit_to_json(learner.circuit)
    return {**data, "bits": learner.inputs}, {**arrays, "first": np.array(learner.first, np.uint8)}


def _from_json(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Learner:
    first = tuple(arrays["first"].tolist())
    return CircuitLearner(circuit_from_json(data, arrays), int(data["bits"]), first)


def _samples(learner: Learner, texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Samples as `bits:label`, or a file of lines of that form."""
    lines: list[str] = []
    for text in texts:
        content = None if ":" in text else content_of(text)
        lines += text.split() if content is None else content.decode("utf-8", "replace").split()
    rows, labels = [], []
    for number, line in enumerate(lines, 1):
        bits, _, label = line.partition(":")
        if len(bits) != learner.inputs or set(bits + label) - {"0", "1"} or len(label) != 1:
            raise InputError(
                f"{line[:80]!r} is not a sample of {learner.inputs} bits and a label",
                where=f"sample {number}",
                advice="Write, say, 0110:1, or give a file of such lines.",
            )
        rows.append([int(bit) for bit in bits])
        labels.append(int(label))
    return np.array(rows, np.uint8).reshape(-1, learner.inputs), np.array(labels, np.uint8)


def _default_inputs(learner: Learner, random: np.random.Generator, in_batches: bool) -> tuple[Inputs, bool]:
    """Random samples with random labels, and with the parity of their bits."""
    count = RANDOM_SAMPLES if in_batches else SAMPLES_FOR_MACHINES
    x = random.integers(0, 2, (count, learner.inputs), np.uint8)
    labels = random.integers(0, 2, count, np.uint8), x.sum(axis=1) % 2
    seed = int(random.integers(1 << 30))
    return iter([(x, y, seed) for y in labels]), False


def random_learner(seed: int, *, inputs: int = 3, cells: int = 4, size: int = 30) -> CircuitLearner:
    """A learner whose answer and next memory are those of a random circuit."""
    circuit = random_circuit(seed, inputs=cells + inputs + 2, size=size, outputs=cells + 2)
    return CircuitLearner(circuit, inputs)


def _call(learner: Learner, given: tuple[Any, ...], named: Mapping[str, Any]) -> Call:
    """Samples and their labels, as `start` takes them; what comes back is the state after the last."""
    if named or not 2 <= len(given) <= 4:
        raise InputError(
            f"the learner {learner.name!r} learns from samples",
            advice="Use net.fit(X, y), then net.predict(X) or net.score(X, y).",
        )
    return Call(given, lambda state: state)


LEARNER = SourceKind(
    name="learner",
    type=Learner,
    to_json=_to_json,
    from_json=_from_json,
    ready=ReadyBy(
        READY,
        lambda name, entry: Ready(entry.summary, lambda: ready(name), lambda: example_samples(name)),
    ),
    parse_input=_samples,
    input_needed="Write samples as bits:label, or give a file of such lines.",
    call=_call,
    default_inputs=_default_inputs,
    sample=random_learner,
    describe=lambda learner: summary(learner.circuit),
    state_json=state_json,
    state_text=state_text,
    view=LearnerView,
    lowerings=(
        Lowering(
            "turing machine",
            "tapegrad.lowering.learner_machine:learner_machine",
            {"carried": Option(2, "bits that the machine carries in its state")},
        ),
    ),
)
