"""Algorithm 1, Lemmas 1 to 4 and Theorem 1: what SGD writes into the memory layer, what the network then
computes, and the precision it needs."""

import math
from itertools import pairwise, product

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad._precision import in_double
from tapegrad.errors import BrokenNet, Refused
from tapegrad.learners.on_grid import single_coordinate
from tapegrad.machines.model import GridMachine, GridRule
from tapegrad.networks.backends.jax import Jax
from tapegrad.networks.numpy import chain
from tapegrad.targets.rcnn.encoding import COMPUTE, OUTSIDE, Cells, cell_values
from tapegrad.targets.rcnn.network import LAST, Rcnn
from tapegrad.targets.rcnn.predicting import predict_many
from tapegrad.targets.rcnn.training import RATE
from tapegrad_papers.goel import PAPER
from tapegrad_papers.goel.definitions import (
    MOST_STEPS,
    Signs,
    TrainedNetwork,
    all_points,
    by_interpreter,
    printed_head,
    single_coordinate_rule,
    trained,
    written_out,
)
from tapegrad_papers.goel.drawn import (
    embedded,
    in_architecture,
    initialisation_set,
    predict_raw,
    regrouped,
    shapes_of,
    success,
    train_raw,
)
from tapegrad_papers.ledger import Outcome, holds, holds_corrected

CLOSE = 1e-9


def lemma_2_memory(X: Signs, y: Signs, rows: int) -> NDArray[np.float64]:
    """y^(a) [x^(a), 1] / 3 in the first `rows` rows, the dummy sample being the last, and 0 below."""
    every = np.vstack([np.column_stack([X, np.ones(len(X))]) * y[:, None], np.ones(X.shape[1] + 1)]) / 3
    every[rows:] = 0
    return every


@PAPER.claim("Algorithm 1", "Plain SGD on the memory layer, one sample a step, the dummy sample last")
def algorithm_1(long: bool) -> Outcome:
    case = trained()
    network, memories = case.network, case.memories
    samples = [*zip(case.X, case.y, strict=True), (np.ones(case.X.shape[1]), 1)]
    worst = 0.0
    for i, (x, label) in list(enumerate(samples))[0 if long else 2 : None if long else 3]:
        slopes = _finite_differences(network, memories[i], np.append(x, 1.0), float(label))
        worst = max(worst, float(np.abs(memories[i] - RATE * slopes - memories[i + 1]).max()))
    checks = {
        "W^(1) = 0": not memories[0].any(),
        "one step for each sample and one for the dummy sample": len(case.steps) == len(case.X) + 1,
        "each step is W - eta grad, with the gradient by finite differences of the network in numpy": worst
        < 1e-6,
        "every step changes W": all((a != b).any() for a, b in pairwise(memories)),
    }
    return holds(
        checks,
        stated="W^(i+1) = W^(i) - eta grad of (y - f)^2 / 2, eta = 1/54",
        measured=f"{len(case.steps)} steps through {network.layers} layers; steps differ from finite "
        f"differences by {worst:.1e}",
        difference=worst,
    )


def _finite_differences(
    network: Rcnn, memory: NDArray[np.float64], z: NDArray[np.float64], label: float
) -> NDArray[np.float64]:
    slopes = np.zeros_like(memory)
    for place in np.ndindex(memory.shape):
        ends = []
        for step in (1e-6, -1e-6):
            moved = memory.copy()
            moved[place] += step
            ends.append((label - written_out(network, moved, z)) ** 2 / 2)
        slopes[place] = (ends[0] - ends[1]) / 2e-6
    return slopes


def _memory_error(case: TrainedNetwork) -> float:
    """The largest distance of W^(i) from Lemma 2, over all i."""
    return max(
        float(np.abs(memory - lemma_2_memory(case.X, case.y, i)).max())
        for i, memory in enumerate(case.memories)
    )


def _predictions_agree(case: TrainedNetwork) -> tuple[bool, int, int]:
    """Whether the network answers as the machine does, and as the rule in NumPy, on all points; the most
    layers, and the most steps."""
    points = all_points(case.X.shape[1])
    try:
        found = predict_many([case.network.with_layers(MOST_STEPS)], [case.steps[-1].memory], points)
    except Refused:  # the memory holds no signs
        return False, 0, 0
    own = [by_interpreter(case.learner.machine, case.X, case.y, x) for x in points]
    rule = [single_coordinate_rule(case.X, case.y, x) for x in points]
    agreed = found.labels[0].tolist() == [answer for answer, _ in own] == rule
    return agreed, int(found.layers.max()), max(steps for _, steps in own)


@PAPER.claim("Lemma 1", "Memorisation, then computation, with weights from a set of size O(s)")
def lemma_1(long: bool) -> Outcome:
    case = trained()
    agreed, layers, _ = _predictions_agree(case)
    first_row = lemma_2_memory(case.X, case.y, 1)[0]
    s = len(case.learner.machine.states)
    allowed = initialisation_set(s)
    used = np.unique(np.concatenate([part.ravel() for part in regrouped(case.network.filter)]))
    away = np.abs(used[:, None] - allowed).min(axis=1) / np.maximum(np.abs(used), 1e-9)
    never = len(set(np.abs(allowed - used[:, None]).argmin(axis=1)))
    sizes = {n: len(initialisation_set(n)) for n in (4, 8, 16, 32, 64)}
    slopes = [(b - a) / (j - i) for (i, a), (j, b) in pairwise(sizes.items())]
    checks = {
        "W^(i) is (y^(a) x^(a), y^(a))/3 in the rows a < i, and 0 below": _memory_error(case) < CLOSE,
        "the printed a <= i is wrong at i = 1: W^(1) is 0": not case.memories[0].any() and first_row.any(),
        "f(x) = A(S)[x] for every x, where A is the interpreter's and the rule in NumPy": agreed,
        "every weight of the filter, grouped as in Definition 5, is in U_s": float(away.max()) < 1e-10,
        "and more than half of U_s is used by this filter: it holds little else": 2 * never > len(allowed),
        "|U_s| <= 24 * 16 s + 5, and grows by 15 to 20 for each state": all(
            size <= 24 * 16 * n + 5 for n, size in sizes.items()
        )
        and all(15 <= slope <= 20 for slope in slopes),
    }
    return holds_corrected(
        checks,
        stated="rows a <= i of W^(i) hold the samples; f(x; W^(m+2)) = A(S)[x]; |U_s| = O(s)",
        measured=f"all {2 ** case.X.shape[1]} points, at most {layers} layers; |U_s| for s = {list(sizes)}: "
        f"{list(sizes.values())}",
        correction="Rows a < i, as in Lemma 2: W^(1) = 0. The value of L is missing; Lemma 2 has it.",
        sizes=list(sizes.values()),
    )


@PAPER.claim("Lemma 2", "The formal restatement: L = c (t + m + d), eta = 1/54")
def lemma_2(long: bool) -> Outcome:
    ratios, errors, agreements, outputs, labels = [], [], [], [], []
    shapes = [(3, 3, 5), (2, 2, 6)] if not long else [(3, 3, 5), (2, 2, 6), (5, 4, 7), (8, 3, 8)]
    for samples, features, seed in shapes:
        case = trained(samples, features, samples + 5, seed)
        agreed, layers, steps = _predictions_agree(case)
        agreements.append(agreed)
        ratios.append(layers / (steps + samples + features))
        errors.append(_memory_error(case))
        outputs.append(max(abs(step.output) for step in case.steps))
        last = 3 * case.memories[-1][:-1, -1]
        labels.append(bool((np.abs(last - case.y) < CLOSE).all() and (case.y**2 != case.y).any()))
    checks = {
        "memorisation: W^(i) at every step": max(errors) < CLOSE,
        "the output is 0 while memorising": max(outputs) < CLOSE,
        "computation: f(x) = A(S)[x] on all points": all(agreements),
        "L <= 1.5 (t + m + d) layers are enough": max(ratios) <= 1.5,
        "the last cell of a sample is y; B.1.2 has y * y, which is 1 for either label": all(labels),
        "eta = 1/54": RATE == 1 / 54,
    }
    return holds(
        checks,
        stated="W^(i) = y [x, 1]/3 in rows a < i; f(x; W^(m+2)) = A(S)[x]; L = c'(t + m + d)",
        measured=f"largest error in W {max(errors):.1e}, largest output {max(outputs):.1e}, "
        f"L/(t + m + d) at most {max(ratios):.2f}",
        note="On the grid framed on all four sides (see Definition 5). The last cell of a row is y, where "
        "B.1.2 prints y * y; t + m + 1 + d layers are enough, where B.3 prints l for t, their own number.",
        error=max(errors),
        layers_ratio=max(ratios),
    )


@PAPER.claim("Lemma 3", "While memorising, all cells become -1/9 and only row tau has a gradient")
@in_double
def lemma_3(long: bool) -> Outcome:
    case = trained()
    network, rng = case.network, np.random.default_rng(4)
    rows, columns, layers = network.rows, network.columns, network.layers
    value_error = gradient_error = 0.0
    band, opposite = True, True

    def last(memory: jax.Array, count: int = layers) -> jax.Array:
        given = {"memory": memory, "z": jnp.ones(columns), "label": jnp.zeros(())}
        values = Jax(network.with_layers(count).network).values(given)
        grid = next(value for node, value in values if node.name == LAST)
        return network.main(grid[..., 0])

    for tau in range(1, rows + 1) if long else (2,):
        X = np.where(np.arange(rows)[:, None] < tau - 1, rng.choice([-1, 1], (rows, columns)) / 3, 0.0)
        for t in (1, 2, layers):
            grid = np.asarray(last(jnp.asarray(X), t))
            near = np.abs(np.arange(1, rows + 1) - tau) < t
            band &= bool(np.allclose(grid, np.where(near[:, None], -1 / 9, X), atol=CLOSE))
            opposite &= not np.allclose(grid[near], 1 / 9, atol=0.1)
        value_error = max(value_error, float(np.abs(np.asarray(last(jnp.asarray(X))) + 1 / 9).max()))
        jacobian = np.asarray(jax.jacrev(last)(jnp.asarray(X)))
        wanted = np.zeros((rows, columns, rows, columns))
        for b in range(columns):
            wanted[tau - 1, b, tau - 1, b] = 1
        gradient_error = max(gradient_error, float(np.abs(jacobian - wanted).max()))
    checks = {
        "after l layers every cell is -3^-2": value_error < CLOSE,
        "after t layers exactly the rows with |a - tau| < t are": band,
        "they are not 3^-2, as the proof writes": opposite,
        "the Jacobian is 1 from a cell of row tau to itself, and 0 otherwise": gradient_error < 1e-8,
    }
    return holds(
        checks,
        stated="f^(l)(Z) = -3^-2 everywhere; gradient 1 iff a = i = tau and b = j",
        measured=f"values to {value_error:.1e}, Jacobians (automatic differentiation) to "
        f"{gradient_error:.1e}",
        note="The statement is right; its proof writes 3^-2 for -3^-2 throughout.",
        values_off=value_error,
        gradient_off=gradient_error,
    )


@PAPER.claim("Lemma 4", "After step tau of Algorithm 1, the first tau rows hold the samples")
def lemma_4(long: bool) -> Outcome:
    case = trained()
    printed = [np.abs(case.memories[tau] - lemma_2_memory(case.X, case.y, tau - 1)).max() for tau in (1, 2)]
    head_slope = (_head(-1 / 9 + 1e-6) - _head(-1 / 9 - 1e-6)) / 2e-6
    checks = {
        "W^(tau+1) has the samples in the rows a <= tau": _memory_error(case) < CLOSE,
        "not only in the rows a < tau": min(printed) > 0.3,
        "W^(1) = 0, not 1": not case.memories[0].any(),
        "f_head(3^-2) = 0, as a blank cell must be; by the printed open intervals it is 1": (
            _head(1 / 9),
            _head_of_open_intervals(1 / 9),
        )
        == (0, 1),
        "f_head(-3^-2) = 0 with slope 18, so that eta = 1/54 writes a third": abs(_head(-1 / 9)) < CLOSE
        and abs(head_slope - 18) < 1e-3
        and abs(18 * RATE - 1 / 3) < 1e-15,
    }
    return holds_corrected(
        checks,
        stated="W^(tau+1)_ab = y^(a) x^(a)_b / 3 if a < tau; the proof starts from W^(1) = 1",
        measured=f"the printed rows are off by {min(printed):.3f}, rows a <= tau by "
        f"{_memory_error(case):.1e}",
        correction="a <= tau, and W^(1) = 0. The intervals of f_head are closed on one side.",
        error=_memory_error(case),
    )


def _head(x: float) -> float:
    """f_head of one cell."""
    return float(printed_head(np.array([[x]]))[0, 0])


def _head_of_open_intervals(x: float) -> float:
    """The cases of B.2 to the letter, by which the ends of intervals but the first are 'otherwise'."""
    return 1.0 if x in (0, 1 / 9, 1 / 6) else _head(x)


SMALLEST = GridMachine(
    {("A", a): GridRule("0", "left", "B") for a in "+-"}
    | {("B", a): GridRule("0", "right", "B") for a in "+-"}
    | {("B", "0"): GridRule("0", "up", "C")}
    | {("C", a): GridRule("0", "left", "D") for a in "+-"},
    "A",
    name="sign",
    alphabet=("+", "-"),
)
"""A learner with four states for one sample of one feature: whether the label is the feature or its opposite.
In XOR form the answer stands in the top left cell; the other three are cleared."""


def _drawable(machine: GridMachine, zeros: bool = True) -> str:
    """Why the filter of a machine is not the draw that its embedding is; empty if it is. A layer on a random
    grid is compared, and all weights with U_s. The zeros of absent units may be left out, for of s^2 weights
    nearly all are such."""
    network, states = Rcnn.of(machine, 2, 2, 8, encoding="ternary"), len(machine.states)
    try:
        weights = in_architecture(network)
        if zeros:
            drawn = embedded(network)
            weights = [np.asarray(weight) for weight in (*drawn.V, drawn.U1, drawn.U2)]
    except (Refused, BrokenNet) as error:
        return str(error)
    if not all(np.isin(weight, initialisation_set(states)).all() for weight in weights):
        return "a weight is not in U_s"
    if zeros and [weight.shape for weight in weights] != shapes_of(states):
        return "the shapes are not those of the architecture"
    cells = network.encoding.cells
    numbers = np.random.default_rng(1).choice(np.flatnonzero(cells.possible), (6, 7))
    patches = _patches(network.encoding.encode(numbers)[0])
    away = np.abs(chain(network.filter.layers, patches) - _as_printed(weights, patches)).max()
    return "" if away < CLOSE else f"a layer differs by {away:.3g}"


def _patches(grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nine cells around each, as columns."""
    padded = np.pad(grid, 1, constant_values=1 / 6)
    rows, columns = grid.shape
    return np.stack([padded[r : r + rows, c : c + columns].ravel() for r in range(3) for c in range(3)])


def _as_printed(weights: list[NDArray[np.float64]], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Definition 5's filter in NumPy: V5 relu(V4 V3 relu(V2 V1 x))."""
    for i, matrix in enumerate(weights[:5]):
        x = matrix[:, :-1] @ x + matrix[:, -1:]
        x = np.maximum(x, 0) if i in (1, 3) else x
    return x


def _drawn_learns(case: tuple[GridMachine, Signs, Signs, Signs, int]) -> bool:
    """Whether the embedded filter, trained by Algorithm 1, has Lemma 2's memory and gives these answers."""
    machine, X, y, answers, layers = case
    drawn = embedded(Rcnn.of(machine, len(X), X.shape[1], layers, encoding="ternary"))
    memory = train_raw(drawn, X, y)
    said = predict_raw(drawn, memory, all_points(X.shape[1]))
    written = np.abs(memory - lemma_2_memory(X, y, len(X) + 1)).max() < CLOSE
    return bool(written and (said == answers).all())


@PAPER.claim("Theorem 1", "Random weights are a filter that learns as well as A with probability s^(-c s^2)")
def theorem_1(long: bool) -> Outcome:
    cases = [
        (SMALLEST, np.array([[x]]), np.array([y]), x * y * all_points(1)[:, 0], 12)
        for x, y in product((-1, 1), repeat=2)
    ]
    if long:
        X, machine = np.array([[1, -1], [-1, -1], [1, 1]]), single_coordinate().machine
        cases.append((machine, X, X[:, 1], all_points(2)[:, 1], 60))
    small, large = [s for s in (1, 2, 3, 4, 8, 16) if long or s <= 4], [32, 128, *([400] if long else [])]
    reasons = {s: {_drawable(_full_machine(s, seed)) for seed in range(3)} for s in small}
    reasons |= {s: {_drawable(_full_machine(s, 0), zeros=False)} for s in large}
    undrawable = {s: max(found) for s, found in reasons.items() if found != {""}}
    learnt = [not undrawable and _drawn_learns(case) for case in cases]
    chances = [success(s) for s in (1, 2, 3, 4, 8, 32, 128, *((512,) if long else ()))]
    printed = shapes_of(4)
    by_lemma_5 = {s: 10 * 9 * (3 ** (int(math.log2(s)) + 4)) ** 9 for s in small}
    c2 = [chance.constant for chance in chances[1:]]
    checks = {
        f"filters of machines of s = {small + large} states are in the architecture, with weights of U_s": (
            not undrawable
        ),
        "trained there by Algorithm 1 on every dataset, the filter of a learner memorises and answers": all(
            learnt
        ),
        "V1 to V5 have Definition 5's shapes, for width 100 s and 100, U1 and U2 each other's; biases beside "
        "them": printed == [(400, 10), (400, 401), (400, 401), (400, 401), (1, 401), (1, 101), (100, 2)],
        "Lemma 5, on all patches of nine values of V_s, takes more than 100 s units in its first layer": all(
            units > 100 * s for s, units in by_lemma_5.items()
        ),
        "c2 = log(1/probability)/(s^2 log s) falls as s grows, towards 3 * 100^2": all(
            a > b > 3e4 for a, b in pairwise(c2)
        )
        and c2[-1] < 5e4,
        "at s = 1, s^(-c s^2) is 1 whatever c is, but the probability is not": chances[0].log10_probability
        < -1000,
    }
    return holds_corrected(
        checks,
        stated="with probability at least s^(-c2 s^2), err(f) <= err(A, S)",
        measured=f"{len(cases)} trained draws learn; |U_s| and log10 of the probability for s = "
        f"{[c.states for c in chances]}: {[c.values for c in chances]}, "
        f"{[round(c.log10_probability) for c in chances]}; c2 = {[round(c) for c in c2]}"
        + "".join(f"; s = {s}: {why}" for s, why in undrawable.items()),
        correction="For s >= 2: at s = 1 the printed bound is 1, and 100 s units are too few for the filter. "
        "U_s has the head's weights too. The grid has work cells on all sides (Definition 5). Lemma 5, which "
        f"B.4 applies to patches, would take 10 * 9 * |V_s|^9 units, {by_lemma_5[2]:.1e} for two states; "
        "for clauses over questions about single cells, as here, 100 s units are enough.",
        c2=c2,
        log10_success=[c.log10_probability for c in chances],
    )


def _full_machine(states: int, seed: int) -> GridMachine:
    """A random learner with a rule for every state and symbol: none has a larger filter."""
    rng = np.random.default_rng([states, seed])
    names, moves = [f"q{i}" for i in range(states)], ("up", "down", "left", "right")
    rules = {
        (q, a): GridRule("0+-"[rng.integers(3)], moves[rng.integers(4)], names[rng.integers(states)])
        for q in names
        for a in "0+-"
    }
    return GridMachine(rules, names[0], alphabet=("+", "-"), states=tuple(names))


def _least_bits(machine: GridMachine, most: int = 52) -> int:
    """The fewest binary places to which cells may be rounded so that a layer stays as it is: every content of
    a cell, as the centre of a patch and beside it, in a grid that computes."""
    network = Rcnn.of(machine, 1, 1, 3, encoding="ternary")
    cells, layers = network.encoding.cells, network.filter.layers
    values = cell_values(cells)
    patches = np.full((2, 9, cells.count), values[cells.number(False, 0, COMPUTE)])
    patches[0, 4] = patches[1, 5] = values
    patches = patches[:, :, cells.possible & (np.arange(cells.count) != OUTSIDE)]
    wanted = [network.encoding.decode(chain(layers, patch)) for patch in patches]

    def same_with(bits: int) -> bool:
        rounded = np.round(patches * 2.0**bits) / 2.0**bits
        found = (network.encoding.decode(chain(layers, patch)) for patch in rounded)
        return all((one == right).all() for one, right in zip(found, wanted, strict=True))

    bits = most
    while bits > 1 and same_with(bits - 1):
        bits -= 1
    return bits


@PAPER.claim("Bit precision", "Algorithm 1 needs log(s) + c bits")
def bit_precision(long: bool) -> Outcome:
    sizes = (3, 9, 33, 129, 513) if long else (3, 33)  # the start state has no digits, the others log2(s - 1)
    least, gaps, expected = {}, {}, {}
    for s in sizes:
        cells = Cells(3, s)
        gaps[s] = float(np.diff(np.unique(cell_values(cells)[cells.possible])).min())
        least[s] = _least_bits(_full_machine(s, 0))
        last_place = 3.0 ** -(3 + math.log2(s - 1))
        expected[s] = math.ceil(math.log2(3 / last_place))
    ratio = (least[sizes[-1]] - least[sizes[0]]) / math.log2((sizes[-1] - 1) / (sizes[0] - 1))
    most = sum(3.0**-i for i in range(1, 60))  # of the values of V_s, whatever s is
    outside = {s: float(np.mean(cell_values(Cells(3, s))[Cells(3, s).possible] > most)) for s in sizes}
    checks = {
        "cells have digits 0 to log2(s - 1) + 3 in base 3, and the padding 1/6 is half a place from one": all(
            abs(2 * gaps[s] * 3 ** (3 + math.log2(s - 1)) - 1) < 1e-3 for s in sizes
        ),
        "errors up to a sixth of the last place change nothing, and some of four times that do": all(
            expected[s] - 2 <= least[s] <= expected[s] for s in sizes
        ),
        "that is log2(3), and not 1, for each doubling of s": abs(ratio - math.log2(3)) < 0.3,
        "work cells hold 1 or more; V_s, whose sums begin at i = 1, has nothing above 1/2": all(
            share > 0 for share in outside.values()
        ),
    }
    return holds_corrected(
        checks,
        stated="bit precision log(s) + c3; each value has digits 0 to log2(s) + 4 in {-1, 0, 1}",
        measured=f"least binary places of cells with which a layer is right on all contents, s = "
        f"{list(sizes)}: {list(least.values())} ({ratio:.2f} for each doubling of s - 1); by the "
        f"last place, at most {list(expected.values())}",
        correction=f"log(s) + c counts ternary digits; in bits it is log2(3) log2(s) + c, {math.log2(3):.3f} "
        "for each doubling. The sums of V_s begin at i = 0, for the work cells.",
        bits=list(least.values()),
        gaps=list(gaps.values()),
    )
