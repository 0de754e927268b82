"""Networks learned by minimising the all-layer-margin loss (2.2) on samples of a circuit and of a machine.

**The margin of a net without shared weights, layer by layer.** Changes (D_l, d_l) of the parameters matter
only by what they add to the values `z_l = W_l h_{l-1} + b_l` on the way. The least change that adds r there
has rank one and norm `|r| / |(h_{l-1}, 1)|`. So, with `r = u_l |(h_{l-1}, 1)|`,

    rho(theta, x, y) = min |(u_1, ..., u_L)|   such that   (y - 1/2) F(x, theta; u) <= 0

where F(x, theta; u) adds `u_l |(h_{l-1}, 1)|` to z_l: (2.1) exactly, with as many unknowns as there are
units. Where steps share their weights, as those of a decoder do, u is the change of the parameters itself.

**How it is found.** `u <- g (g . u - F(u)) / |g|^2` with the slope g of F at u: the nearest zero of the
linearised F. A fixed point is a zero of F that is a stationary point of |u|. It may miss a nearer one, so
what is found is at least rho, as it is for any attack.

**What is minimised: a stand-in where predictions are wrong.** (2.2) is 1 there, and flat. Here it is
continued with the same slope, `max(0, 1 - m / gamma)` with the signed margin m, rho where the prediction is
right and minus the distance to a right one where it is wrong. The two are equal where predictions are
right. In particular, parameters at which one is 0 on the whole sample minimise the other.

The slope of m is that of `(y - 1/2) F(x, theta; u)` at the fixed u, divided by the length of g. Parameters
change by Adam on this slope, and shrink towards 0 by the 1-norm's proximal step, because the class is
bounded in the 1-norm; towards the end the shrinking stops, so that margins can grow to gamma.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.evaluator import evaluate
from tapegrad.circuits.model import Circuit
from tapegrad.errors import Refused
from tapegrad.machines.model import RIGHT, Rule, TuringMachine
from tapegrad_papers.wei.samples import lemma_2_3, surrogate_loss, transformer_sizes

Parameters = Any


@dataclass(frozen=True)
class Network:
    """`output(theta, x, u)` is F(x, theta; u), one number; `room(theta)` is the u that changes nothing."""

    output: Callable[[Parameters, Array, Any], Array]
    room: Callable[[Parameters], Any]


CIRCUIT_GAMMA, MACHINE_GAMMA = 0.2, 0.02
"""Steps that share their weights have smaller margins: a change counts once in each of them."""
EPSILON = 0.1
ROUNDS, FINAL_ROUNDS = 3, 20
"""Steps to the nearest zero, while training and for what is reported."""
REACH = 5.0
"""How far it is looked for, in units of gamma."""
CIRCUIT_RATE, MACHINE_RATE, PENALTY = 3e-3, 1e-3, 0.2
STEPS, SHRINKING = 1500, 0.7
"""Steps of Adam, and the share of them in which the 1-norm is shrunk."""


def feed_forward(theta: Parameters, x: Array, u: Any) -> Array:
    """`F_{w,d}` of section 3 with u added to every layer, as above."""
    values = x
    for number, ((W, b), own) in enumerate(zip(theta, u, strict=True)):
        z = W @ values + b + own * jnp.sqrt(values @ values + 1)
        values = z if number == len(theta) - 1 else jax.nn.relu(z)
    return values[0]


def recurrent(theta: Parameters, word: Array, u: Any) -> Array:
    """A decoder that reads one symbol in each step and has no other attention: `h <- relu(W h + E x_i +
    b)`, the same in all steps, and `theta_cls . h + c` at the end."""
    W, E, b, h_0, theta_cls, c = jax.tree.map(jnp.add, theta, u)
    last, _ = lax.scan(lambda h, symbol: (jnp.clip(W @ h + E[:, symbol] + b, 0, 1), None), h_0, word)
    return theta_cls @ last + c


FEED_FORWARD = Network(feed_forward, lambda theta: [jnp.zeros_like(b) for _, b in theta])
RECURRENT = Network(recurrent, lambda theta: jax.tree.map(jnp.zeros_like, theta))


@partial(jax.jit, static_argnames=("network", "rounds"))
def signed_margins(
    network: Network, theta: Parameters, xs: Array, signs: Array, reach: Array | float, rounds: int
) -> Array:
    """m for every x and its sign, +1 or -1, with the derivatives described above. No u is longer than
    `reach`, so that no larger margin is told from it: a long u can make many steps with shared weights
    overflow."""
    nothing, unravel = ravel_pytree(network.room(theta))

    def one(x: Array, sign: Array) -> Array:
        def output(own: Parameters, u: Array) -> Array:
            return sign * network.output(own, x, unravel(u))

        fixed = lax.stop_gradient(theta)
        at = jax.value_and_grad(partial(output, fixed))

        def nearer(_: int, u: Array) -> Array:
            value, slope = at(u)
            u = slope * (slope @ u - value) / (slope @ slope)
            return u * jnp.minimum(1, reach / jnp.linalg.norm(u))

        u = lax.stop_gradient(lax.fori_loop(0, rounds, nearer, nothing))
        moves = output(theta, u) / jnp.linalg.norm(at(u)[1])
        m = jnp.sign(output(fixed, nothing)) * jnp.linalg.norm(u)
        return m + moves - lax.stop_gradient(moves)

    return jax.vmap(one)(xs, signs)


def hinge_of_margins(network: Network, theta: Parameters, xs: Array, signs: Array, gamma: Array) -> Array:
    """The stand-in for (2.2)."""
    return jax.nn.relu(1 - signed_margins(network, theta, xs, signs, REACH * gamma, ROUNDS) / gamma).mean()


def logistic(network: Network, theta: Parameters, xs: Array, signs: Array, gamma: Array) -> Array:
    """Of the output alone: what is usually minimised, for comparison. It knows no gamma."""
    outputs = jax.vmap(lambda x: network.output(theta, x, network.room(theta)))(xs)
    return jnp.logaddexp(0, -signs * outputs).mean()


@partial(jax.jit, static_argnames=("loss", "network", "steps"))
def _train(
    loss: Callable[..., Array],
    network: Network,
    theta: Parameters,
    data: tuple[Array, Array, float],
    rate: float,
    penalty: float,
    steps: int,
) -> Parameters:
    """Adam with a proximal step of the 1-norm."""

    def step(number: int, carry: tuple[Parameters, Parameters, Parameters]) -> Any:
        theta, mean, square = carry
        slope = jax.grad(loss, argnums=1)(network, theta, *data)
        mean = jax.tree.map(lambda a, g: 0.9 * a + 0.1 * g, mean, slope)
        square = jax.tree.map(lambda a, g: 0.999 * a + 0.001 * g * g, square, slope)
        t = number + 1.0
        shrink = jnp.where(t <= SHRINKING * steps, rate * penalty, 0.0)

        def moved(own: Array, a: Array, b: Array) -> Array:
            new = own - rate * (a / (1 - 0.9**t)) / (jnp.sqrt(b / (1 - 0.999**t)) + 1e-8)
            return jnp.sign(new) * jnp.maximum(jnp.abs(new) - shrink, 0)

        return jax.tree.map(moved, theta, mean, square), mean, square

    nothing = jax.tree.map(jnp.zeros_like, theta)
    return lax.fori_loop(0, steps, step, (theta, nothing, nothing))[0]


def margin_loss(margins: NDArray[np.floating], gamma: float) -> float:
    """The mean of (2.2). A negative margin is a wrong prediction."""
    return float(surrogate_loss(np.maximum(margins, 0), gamma).mean())


@dataclass(frozen=True)
class Task:
    """A network, the parameters that training starts from, samples with their signs; and what to test on."""

    network: Network
    theta: Parameters
    samples: Array
    signs: Array
    tests: Array
    wanted: NDArray[np.bool_]
    gamma: float
    rate: float

    def error(self, theta: Parameters) -> float:
        """The share of tests with a wrong prediction."""
        room = self.network.room(theta)
        outputs = jax.jit(jax.vmap(lambda x: self.network.output(theta, x, room)))(self.tests)
        return float(np.mean((np.asarray(outputs) > 0) != self.wanted))

    def learn(self, by_margins: bool, steps: int = STEPS) -> Parameters:
        """By the stand-in for (2.2) and the 1-norm, or by the logistic loss alone."""
        loss, penalty = (hinge_of_margins, PENALTY) if by_margins else (logistic, 0.0)
        data = self.samples, self.signs, self.gamma
        return _train(loss, self.network, self.theta, data, self.rate, penalty, steps)

    def margins(self, theta: Parameters) -> NDArray[np.floating]:
        """Of the samples, signed."""
        reach = REACH * self.gamma
        return np.asarray(signed_margins(self.network, theta, self.samples, self.signs, reach, FINAL_ROUNDS))


@dataclass(frozen=True)
class Row:
    """One training, by margins, and beside it one from the same start by the outputs alone."""

    experiment: str
    size: int
    """Of the net (width), of the circuit (gates) or T."""
    seed: int
    samples: int
    error: float
    error_by_outputs: float
    loss: float
    """(2.2) on the samples."""
    least_margin: float
    norm: float
    norm_by_outputs: float
    parameters: int
    bound: float
    """Samples that suffice for error 0.1 by Lemma 2.3, for the norm and gamma of this net."""


def row_of(experiment: str, size: int, seed: int, task: Task, steps: int = STEPS) -> Row:
    """Both trainings and what came of them."""
    theta, other = task.learn(True, steps), task.learn(False, steps)
    margins, alpha = task.margins(theta), norm_of(theta)
    count = sum(leaf.size for leaf in jax.tree.leaves(theta))
    return Row(
        experiment,
        size,
        seed,
        len(task.samples),
        task.error(theta),
        task.error(other),
        margin_loss(margins, task.gamma),
        float(margins.min()),
        alpha,
        norm_of(other),
        count,
        lemma_2_3(alpha, task.gamma, count, EPSILON).samples,
    )


def norm_of(theta: Parameters) -> float:
    """alpha: the 1-norm of all parameters."""
    return sum(float(jnp.abs(leaf).sum()) for leaf in jax.tree.leaves(theta))


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
        FEED_FORWARD, theta, tests[drawn], _signs(labels[drawn]), tests, labels, CIRCUIT_GAMMA, CIRCUIT_RATE
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
        RECURRENT, theta, given[:samples], signs, given[samples:], wanted, MACHINE_GAMMA, MACHINE_RATE
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
TIMES = (4, 8, 16, 32, 64)
EXPERIMENTS = ("width", "gates", "T")


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
    """A line for each size: means over the seeds, and the worst margin loss and margin."""
    lines = [
        "              test error, %     loss (2.2)   least      1-norm         Lemma 2.3",
        "           margins   outputs    at most     margin  margins outputs     samples",
    ]
    for name in EXPERIMENTS:
        for size in sorted({row.size for row in rows if row.experiment == name}):
            own = [row for row in rows if (row.experiment, row.size) == (name, size)]
            mean = {f: np.mean([getattr(row, f) for row in own]) for f in ("error", "error_by_outputs")}
            norms = [np.mean([getattr(row, f) for row in own]) for f in ("norm", "norm_by_outputs")]
            bound = math.exp(np.mean([math.log(row.bound) for row in own]))
            lines.append(
                f"{name:<6}{size:>4} {100 * mean['error']:>8.2f} {100 * mean['error_by_outputs']:>9.2f} "
                f"{max(row.loss for row in own):>10.4f} {min(row.least_margin for row in own):>10.4f} "
                f"{norms[0]:>8.0f} {norms[1]:>7.0f} {bound:>11.2e}"
            )
    return "\n".join(lines)


def report(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """As plain dictionaries."""
    return [asdict(row) for row in rows]


def figure(rows: Sequence[Row], path: Path) -> None:
    """Above: test errors. Below: what the bounds ask for, and what was given."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Refused("figures need matplotlib", advice="Install tapegrad[plot].") from error
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
        below.legend(fontsize=7)
    panels[0, 0].set_ylabel("test error, %")
    panels[1, 0].set_ylabel("samples that suffice")
    panels[0, 0].legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "learned"}):
        drawing.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
