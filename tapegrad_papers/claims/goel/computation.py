"""Theorem 1 and the precision it needs."""

import math
from itertools import islice, pairwise

import numpy as np

from tapegrad.machines.grid import GridMachine
from tapegrad.machines.sampler import random_grid_machine
from tapegrad.targets.rcnn.digits import cell_values
from tapegrad.targets.rcnn.net import RcnnNet, Sheet
from tapegrad.targets.rcnn.predicting import predict
from tapegrad.targets.rcnn.weights import count_weights
from tapegrad_papers.claims.goel.instances import all_points, by_interpreter, trained
from tapegrad_papers.claims.goel.paper import PAPER
from tapegrad_papers.claims.ledger import Outcome, asymptotic, holds_corrected
from tapegrad_papers.goel.raw import success


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
