"""Networks learned by the all-layer-margin loss from samples of a circuit and of a machine; the figure."""

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tapegrad._files import write_atomically
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.evaluator import evaluate
from tapegrad.circuits.model import Circuit
from tapegrad.errors import InputError, Refused
from tapegrad.machines.model import RIGHT, Rule, TuringMachine
from tapegrad_papers.wei.margin_training import FEED_FORWARD, RECURRENT, Row, Task, row_of
from tapegrad_papers.wei.samples import transformer_sizes

CIRCUIT_GAMMA, MACHINE_GAMMA = 0.2, 0.02
"""Steps that share their weights have smaller margins: a change counts once in each of them."""
CIRCUIT_RATE, MACHINE_RATE = 3e-3, 1e-3
CIRCUIT_STEPS, MACHINE_STEPS = 1500, 4000


# A circuit.


INPUTS = 12


def pairs(count: int) -> Circuit:
    """`x0 x1 or x2 x3 or ...`, of this many pairs; the rest of the twelve inputs do not matter."""
    make = CircuitBuilder()
    wires = [make.input(f"x{i}") for i in range(INPUTS)]
    found = make.and_(wires[0], wires[1])
    for i in range(1, count):
        found = make.or_(found, make.and_(wires[2 * i], wires[2 * i + 1]))
    make.output("y", found)
    return make.circuit(f"{count} pairs")


def circuit_task(circuit: Circuit, samples: int, width: int, seed: int) -> Task:
    """Uniform samples; a net with two hidden layers of this width; tested on all 4,096 inputs."""
    random = np.random.default_rng(seed)
    every = np.arange(1 << INPUTS)[:, None] >> np.arange(INPUTS) & 1
    labels = evaluate(circuit, every.astype(bool))[:, 0].astype(bool)
    drawn = random.integers(len(every), size=samples)
    sizes = (INPUTS, width, width, 1)
    theta = [
        (_normal(random, (o, i), math.sqrt(2 / i)), jnp.zeros(o, jnp.float32)) for i, o in pairwise(sizes)
    ]
    tests = jnp.asarray(every, jnp.float32)
    return Task(
        FEED_FORWARD,
        theta,
        tests[drawn],
        _signs(labels[drawn]),
        tests,
        labels,
        CIRCUIT_GAMMA,
        CIRCUIT_RATE,
        CIRCUIT_STEPS,
    )


def _normal(random: np.random.Generator, shape: tuple[int, ...], scale: float) -> Array:
    return jnp.asarray(random.normal(size=shape) * scale, jnp.float32)


def _signs(labels: NDArray[np.bool_]) -> Array:
    return jnp.asarray(2.0 * labels - 1, jnp.float32)


# A machine.


TESTS = 4000
STATE_WIDTH = 16


def two_ones() -> TuringMachine:
    """Accepts words of 0 and 1 in which a 1 follows a 1; halts within one step more than there are
    letters."""
    rules = {
        ("other", ("0",)): Rule(("0",), (RIGHT,), "other"),
        ("other", ("1",)): Rule(("1",), (RIGHT,), "one"),
        ("one", ("0",)): Rule(("0",), (RIGHT,), "other"),
        ("one", ("1",)): Rule(("1",), (RIGHT,), "yes"),
        ("other", ("_",)): Rule(("_",), (RIGHT,), "no"),
        ("one", ("_",)): Rule(("_",), (RIGHT,), "no"),
    }
    return TuringMachine(rules, "other", accept=frozenset({"yes"}), reject=frozenset({"no"}), name="two ones")


def even_chance(letters: int) -> float:
    """How often a letter must be 1 for half of all words to be accepted, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        other, one = 1.0, 0.0  # no two ones so far, by the last letter
        for _ in range(letters):
            other, one = (other + one) * (1 - middle), other * middle
        low, high = (middle, high) if other + one > 0.5 else (low, middle)
    return low


def machine_task(machine: TuringMachine, steps: int, samples: int, seed: int) -> Task:
    """Words that the machine decides within T steps, labelled by running it."""
    random = np.random.default_rng(seed)
    words = (random.random((samples + TESTS, steps - 1)) < even_chance(steps - 1)).astype(int)
    labels = np.array([_accepts(machine, "".join(map(str, word)), steps) for word in words])
    w = STATE_WIDTH
    theta = (
        jnp.eye(w, dtype=jnp.float32) + _normal(random, (w, w), 0.1 / math.sqrt(w)),
        _normal(random, (w, 2), 0.3),
        jnp.zeros(w, jnp.float32),
        jnp.full(w, 0.1, jnp.float32),
        _normal(random, (w,), math.sqrt(1 / w)),
        jnp.zeros((), jnp.float32),
    )
    given = jnp.asarray(words)
    signs, wanted = _signs(labels[:samples]), labels[samples:]
    return Task(
        RECURRENT,
        theta,
        given[:samples],
        signs,
        given[samples:],
        wanted,
        MACHINE_GAMMA,
        MACHINE_RATE,
        MACHINE_STEPS,
    )


def _accepts(machine: TuringMachine, word: str, steps: int) -> bool:
    *_, last = islice(machine.run(machine.start(word)), steps + 1)
    if last.state not in machine.accept | machine.reject:
        raise ArithmeticError(f"{machine.name} did not decide {word!r} within {steps} steps")
    return last.state in machine.accept


# The experiments, and the figure.


SAMPLES = 100
PAIRS = 3
WIDTHS = (16, 32, 64, 128, 256)
COUNTS = (1, 2, 3, 4, 5)
TIMES = (4, 8, 16, 32)
EXPERIMENTS = ("width", "gates", "T")
FORMATS = (".svg", ".png", ".pdf")


def experiments(seeds: int, long: bool = True) -> Iterator[Row]:
    """Every training: the width of the net, the size of the circuit, the time of the machine; seeds 0, 1,
    ..."""
    for seed in range(seeds):
        for width in WIDTHS if long else WIDTHS[:2]:
            yield row_of("width", width, seed, circuit_task(pairs(PAIRS), SAMPLES, width, seed))
        for count in COUNTS if long else COUNTS[:2]:
            circuit = pairs(count)
            yield row_of("gates", 2 * count - 1, seed, circuit_task(circuit, SAMPLES, 64, seed))
        for steps in TIMES if long else TIMES[:2]:
            yield row_of("T", steps, seed, machine_task(two_ones(), steps, SAMPLES, seed))


def count(seeds: int, long: bool = True) -> int:
    """How many trainings there are."""
    return seeds * (sum(map(len, (WIDTHS, COUNTS, TIMES))) if long else 6)


def table(rows: Sequence[Row]) -> str:
    """A line for each size: means over the seeds, with standard deviations of the errors, and the worst
    margin loss and margin."""
    lines = [
        "                  test error, %          loss (2.2)   least      1-norm         Lemma 2.3",
        "             margins         outputs      at most     margin  margins outputs     samples",
    ]
    for name in EXPERIMENTS:
        for size in sorted({row.size for row in rows if row.experiment == name}):
            own = [row for row in rows if (row.experiment, row.size) == (name, size)]
            errors = " ".join(_with_spread(own, field) for field in ("error", "error_by_outputs"))
            norms = [np.mean([getattr(row, f) for row in own]) for f in ("norm", "norm_by_outputs")]
            bound = math.exp(np.mean([math.log(row.bound) for row in own]))
            lines.append(
                f"{name:<6}{size:>4} {errors} "
                f"{max(row.loss for row in own):>10.4f} {min(row.least_margin for row in own):>10.4f} "
                f"{norms[0]:>8.0f} {norms[1]:>7.0f} {bound:>11.2e}"
            )
    return "\n".join(lines)


def _with_spread(rows: Sequence[Row], field: str) -> str:
    """Mean and standard deviation over the seeds, in per cent; one seed has no deviation."""
    values = [100 * getattr(row, field) for row in rows]
    spread = f"{np.std(values, ddof=1):.2f}" if len(values) > 1 else "?"
    return f"{np.mean(values):>8.2f} +- {spread:<5}"


def report(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """As plain dictionaries."""
    return [asdict(row) for row in rows]


def require_drawable(path: Path) -> None:
    """Refuses, before anything is trained, what could not be drawn afterwards."""
    if find_spec("matplotlib") is None:
        raise Refused("figures need matplotlib", advice="Install tapegrad[plot].")
    if path.suffix not in FORMATS:
        raise InputError(f"{path} is no {', '.join(FORMATS)} file", advice="Choose one of these endings.")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no such folder, or it is one")


def figure(rows: Sequence[Row], path: Path) -> None:
    """Above: test errors. Below: what the bounds ask for, and what was given."""
    require_drawable(path)
    import matplotlib as mpl
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(9.6, 5.4), layout="constrained")
    panels = drawing.subplots(2, 3, sharey="row", sharex="col")
    titles = {"width": "width of the net", "gates": "gates of the circuit", "T": "time T of the machine"}
    for (above, below), name in zip(panels.T, EXPERIMENTS, strict=True):
        own = [row for row in rows if row.experiment == name]
        sizes = sorted({row.size for row in own})
        for field, label, style in (
            ("error", "all-layer margins", "C0o"),
            ("error_by_outputs", "outputs", "C1s"),
        ):
            means = [np.mean([getattr(r, field) for r in own if r.size == size]) for size in sizes]
            above.plot(sizes, [100 * mean for mean in means], style[:2] + "-", label=f"by {label}")
            ends = [[100 * getattr(r, field) for r in own if r.size == size] for size in sizes]
            above.fill_between(
                sizes, [min(e) for e in ends], [max(e) for e in ends], color=style[:2], alpha=0.15
            )
            above.plot([r.size for r in own], [100 * getattr(r, field) for r in own], style, alpha=0.4, ms=4)
        bounds = [np.exp(np.mean([np.log(r.bound) for r in own if r.size == size])) for size in sizes]
        below.semilogy(sizes, bounds, "C0-", label="Lemma 2.3, learned nets")
        if name == "T":
            built = transformer_sizes(two_ones(), [size.bit_length() - 1 for size in sizes])
            below.semilogy(sizes, [row.samples for row in built], "C2--", label="Theorem 4.1, built nets")
        below.semilogy(sizes, [SAMPLES] * len(sizes), "k:", label=f"given: {SAMPLES}")
        if name != "gates":
            below.set_xscale("log", base=2)
        below.set_xlabel(titles[name])
        below.legend(fontsize=7, loc="center", bbox_to_anchor=(0.5, 0.32))
    panels[0, 0].set_ylabel("test error, %")
    panels[1, 0].set_ylabel("samples that suffice")
    panels[0, 0].legend(fontsize=8)
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "learned"}):
        drawing.savefig(
            buffer, format=path.suffix[1:], metadata={"Date": None} if path.suffix == ".svg" else None
        )
    write_atomically(path, buffer.getvalue())
