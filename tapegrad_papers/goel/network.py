"""Algorithm 1, Lemmas 1 to 4 and Theorem 1: what SGD writes into the memory layer, what the network then
computes, and the precision it needs."""

import math
from itertools import islice, pairwise

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad._precision import in_double
from tapegrad.machines.model import GridMachine
from tapegrad.machines.sampler import random_grid_machine
from tapegrad.targets.rcnn.encoding import cell_values
from tapegrad.targets.rcnn.exactness import count_weights, initialisation_set, weight_values
from tapegrad.targets.rcnn.net import RcnnNet, Sheet
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.rcnn.predicting import predict
from tapegrad.targets.rcnn.training import RATE
from tapegrad_papers.goel import PAPER
from tapegrad_papers.goel.definitions import (
    Signs,
    TrainedNetwork,
    all_points,
    by_interpreter,
    printed_head,
    trained,
    written_out,
)
from tapegrad_papers.goel.restarts import success
from tapegrad_papers.ledger import Outcome, asymptotic, holds, holds_corrected

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
    """Whether the network answers as the machine on all points; the most layers, and the most steps."""
    points = all_points(case.X.shape[1])
    found = predict(case.network.with_layers(100_000), case.steps[-1].memory, points)
    own = [by_interpreter(case.learner.machine, case.X, case.y, x) for x in points]
    agreed = bool((found.labels == np.array([answer for answer, _ in own])).all())
    return agreed, int(found.layers.max()), max(steps for _, steps in own)


@PAPER.claim("Lemma 1", "Memorisation, then computation, with weights from a set of size O(s)")
def lemma_1(long: bool) -> Outcome:
    case = trained()
    agreed, layers, _ = _predictions_agree(case)
    first_row = lemma_2_memory(case.X, case.y, 1)[0]
    s = len(case.learner.machine.states)
    used, allowed = weight_values(case.network.filter), initialisation_set(s)
    sizes = {n: len(initialisation_set(n)) for n in (4, 8, 16, 32, 64)}
    checks = {
        "W^(i) is (y^(a) x^(a), y^(a))/3 in the rows a < i, and 0 below": _memory_error(case) < CLOSE,
        "the printed a <= i is wrong at i = 1: W^(1) is 0": not case.memories[0].any() and first_row.any(),
        "f(x) = A(S)[x] for every x": agreed,
        "every weight of the filter is in U_s": bool(np.isin(used, allowed).all()),
        "|U_s| grows no faster than s": all(sizes[2 * n] <= 2.2 * sizes[n] for n in (4, 8, 16, 32)),
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
    ratios, errors, agreements, outputs = [], [], [], []
    shapes = [(3, 3, 5), (2, 2, 6)] if not long else [(3, 3, 5), (2, 2, 6), (5, 4, 7), (8, 3, 8)]
    for samples, features, seed in shapes:
        case = trained(samples, features, samples + 5, seed)
        agreed, layers, steps = _predictions_agree(case)
        agreements.append(agreed)
        ratios.append(layers / (steps + samples + features))
        errors.append(_memory_error(case))
        outputs.append(max(abs(step.output) for step in case.steps))
    checks = {
        "memorisation: W^(i) at every step": max(errors) < CLOSE,
        "the output is 0 while memorising": max(outputs) < CLOSE,
        "computation: f(x) = A(S)[x] on all points": all(agreements),
        "L <= 1.5 (t + m + d) layers are enough": max(ratios) <= 1.5,
        "eta = 1/54": RATE == 1 / 54,
    }
    return holds(
        checks,
        stated="W^(i) = y [x, 1]/3 in rows a < i; f(x; W^(m+2)) = A(S)[x]; L = c'(t + m + d)",
        measured=f"largest error in W {max(errors):.1e}, largest output {max(outputs):.1e}, "
        f"L/(t + m + d) at most {max(ratios):.2f}",
        note="On the grid framed on all four sides (see Definition 5).",
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
        grid = network.framed(memory, jnp.ones(columns))
        for _ in range(count):
            grid = network.filter(grid)
        return network.main(grid)[0]

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
        "f_head(-3^-2) = 0 with slope 18, so that eta = 1/54 writes a third": abs(_head(-1 / 9)) < CLOSE
        and abs(head_slope - 18) < 1e-3
        and abs(18 * RATE - 1 / 3) < 1e-15,
    }
    return holds_corrected(
        checks,
        stated="W^(tau+1)_ab = y^(a) x^(a)_b / 3 if a < tau; the proof starts from W^(1) = 1",
        measured=f"the printed rows are off by {min(printed):.3f}, rows a <= tau by "
        f"{_memory_error(case):.1e}",
        correction="a <= tau, and W^(1) = 0.",
        error=_memory_error(case),
    )


def _head(x: float) -> float:
    """f_head of one cell."""
    return float(printed_head(np.array([[x]]))[0, 0])


@PAPER.claim("Theorem 1", "Random weights are a filter that learns as well as A with probability s^(-c s^2)")
def theorem_1(long: bool) -> Outcome:
    case = trained()
    points = all_points(3)
    said = predict(case.network.with_layers(100_000), case.steps[-1].memory, points).labels
    own = np.array([by_interpreter(case.learner.machine, case.X, case.y, x)[0] for x in points])
    truth = points[:, 1]
    sizes = (3, 4, 8, 32, 128, 512) if long else (3, 4, 8, 32, 128)
    counts = [count_weights(random_grid_machine(states=s, symbols=3, seed=s)) for s in sizes]
    c2 = [-c.log10_success / (c.states**2 * math.log10(c.states)) for c in counts]
    per_square = [c.dense_parameters / c.states**2 for c in counts]
    one_state = success(1)
    checks = {
        "the error of f is that of A": np.mean(said != truth) == np.mean(own != truth)
        and (said == own).all(),
        "width at most 100 s": all(c.width <= c.claimed_width for c in counts),
        "dense parameters per s^2 fall as s grows: O(s^2)": all(b < a for a, b in pairwise(per_square)),
        "so does c2 = log(1/probability)/(s^2 log s)": all(b < a for a, b in pairwise(c2)),
        "at s = 1, s^(-c s^2) is 1 whatever c is, but the probability is not": one_state.log10_probability
        < -1000,
    }
    return asymptotic(
        checks,
        stated="with probability at least s^(-c2 s^2), err(f) <= err(A, S)",
        measured=f"the filter of A gives A's error; c2 for s = {list(sizes)}: {[round(c) for c in c2]}; raw "
        f"draws of {success(4).parameters:,} weights for s = 4 hit with probability "
        f"10^{success(4).log10_probability:,.0f}",
        instead="The filter itself, and the constants for growing s. For s = 1 the printed bound says "
        "probability 1, so it is for s >= 2.",
        c2=c2,
        log10_success=[c.log10_success for c in counts],
    )


def _least_bits(machine: GridMachine, most: int = 40) -> int:
    """The fewest binary places to which layers may be rounded so that 10 of them still run the machine."""
    first = machine.start([["1", "2", "1"], ["2", "0", "2"]], (1, 1))
    wanted = list(islice(machine.run(first), 10))
    net = RcnnNet.of(machine, "ternary", 12)

    def runs_with(bits: int) -> bool:
        carry = net.start(first)
        for configuration in wanted:
            grid = np.round(carry.grid * 2.0**bits) / 2.0**bits
            if net.decode(Sheet(grid, carry.corner)) != configuration:
                return False
            carry = net.step(Sheet(grid, carry.corner))
        return True

    bits = most
    while bits > 1 and runs_with(bits - 1):
        bits -= 1
    return bits


@PAPER.claim("Bit precision", "Algorithm 1 needs log(s) + c bits")
def bit_precision(long: bool) -> Outcome:
    sizes = (4, 16, 64, 256) if long else (4, 64)
    least, gaps = {}, {}
    for s in sizes:
        machine = random_grid_machine(states=s, symbols=3, seed=s)
        net = RcnnNet.of(machine, "ternary", 12)
        values = np.unique(cell_values(net.encoding.cells)[net.encoding.cells.possible])
        gaps[s] = -math.log(float(np.diff(values).min()), 3)
        least[s] = _least_bits(machine)
    ratio = (least[sizes[-1]] - least[sizes[0]]) / math.log2(sizes[-1] / sizes[0])
    checks = {
        "cells differ by 3^-(log2 s + 5) at least: log2(s) + c balanced ternary digits": all(
            gaps[s] <= math.log2(s) + 5 for s in sizes
        ),
        "rounded to the bits found, every layer decodes; and to fewer, not": all(
            2 < b < 40 for b in least.values()
        ),
        "bits grow like log2(3) log2(s), by 1.2 to 2.1 for each doubling of s": 1.2 <= ratio <= 2.1,
        "and by more than one for each doubling": ratio > 1,
    }
    return holds_corrected(
        checks,
        stated="bit precision log(s) + c3; each value has digits 0 to log2(s) + 4 in {-1, 0, 1}",
        measured=f"least binary places with which 10 layers run, s = {list(sizes)}: {list(least.values())} "
        f"({ratio:.2f} for each doubling)",
        correction="log(s) + c counts ternary digits; in bits it is log2(3) log2(s) + c, 1.585 for each "
        "doubling.",
        bits=list(least.values()),
    )
