"""Learning algorithms as a kind of source."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._files import content_of
from tapegrad.circuits.kind import circuit_from_json, circuit_to_json
from tapegrad.circuits.sampler import random_circuit
from tapegrad.circuits.view import summary
from tapegrad.errors import InputError
from tapegrad.learners.library import READY, example_samples, ready
from tapegrad.learners.model import CircuitLearner, Learner
from tapegrad.learners.view import LearnerView, state_json, state_text
from tapegrad.source import Arrays, Inputs, Lowering, Option, Ready, ReadyBy, SourceKind

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
