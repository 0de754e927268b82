"""Vertices as Boolean functions: what they compute from their weights, and their total input in every
case; and those that compute no gate."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from tapegrad_check import CheckError
from tapegrad_check.core.nodes import Nodes
from tapegrad_check.targets.vertices import (
    Computation,
    Graph,
    _totals_of_few,
    _totals_of_many,
    given_vertices,
)
from tests.check.test_passes_to_circuits import value

INPUTS = 3
"""Vertex 0 is the constant, 1 to 3 are inputs, at -1 or 1; all others are at -2 or 2."""

Edges = list[tuple[int, float]]


def computed(*vertices: Edges) -> tuple[Computation, list[int]]:
    """The vertices that follow the inputs, worked out."""
    offsets = np.cumsum([0, *map(len, vertices)])
    edges = [edge for own in vertices for edge in own]
    graph = Graph(
        np.array([weight for _, weight in edges]),
        offsets,
        np.array([source for source, _ in edges]),
        1 + INPUTS,
    )
    nodes = Nodes()
    bits = nodes.variables(INPUTS)
    compute = Computation(graph, nodes, {1 + number: bit for number, bit in enumerate(bits)})
    compute.run(range(1 + INPUTS, 1 + INPUTS + len(vertices)))
    return compute, [compute[1 + INPUTS + number] for number in range(len(vertices))]


def by_hand(vertices: tuple[Edges, ...], bits: tuple[int, ...]) -> list[int]:
    at = [1.0, *(2.0 * bit - 1 for bit in bits)]
    for own in vertices:
        at.append(2.0 if sum(weight * at[source] for source, weight in own) > 0 else -2.0)
    return [int(own > 0) for own in at[1 + INPUTS :]]


COPIES: tuple[Edges, ...] = ([(1, 4.0)], [(2, 4.0)], [(3, -4.0)])
"""Vertices 4, 5 and 6: inputs and a negation, at -2 or 2."""
CASES: list[tuple[Edges, ...]] = [
    ([(1, 3.0), (2, 3.0), (0, -2.0)],),
    ([(1, 3.0), (2, -3.0), (0, 2.0)], [(4, 1.0), (1, -3.0), (0, 0.5)]),
    ([(0, 2.0)], [(0, -2.0)], [(4, 1.0), (5, 1.0), (1, 1.0)]),
    (*COPIES, [(4, 2.0), (5, 2.0), (6, 2.0), (0, -8.0)]),
    (*COPIES, [(4, 2.0), (5, 2.0), (6, 2.0), (0, 8.0)]),
    (*COPIES, [(4, -2.0), (5, -2.0), (6, -2.0), (0, 8.0)]),
    (*COPIES, [(4, -2.0), (5, -2.0), (6, -2.0), (0, -8.0)]),
    (*COPIES, [(4, 2.0), (5, 2.0), (0, -4.0)], [(4, 2.0), (5, 2.0), (7, -4.0), (0, -2.0)]),
    (*COPIES, [(4, -2.0), (6, 2.0), (0, -4.0)], [(4, 2.0), (6, 2.0), (7, 4.0), (0, -2.0)]),
    (*COPIES, [(5, 2.0), (4, -2.0), (0, 4.0)], [(7, -4.0), (5, 2.0), (4, 2.0), (0, 2.0)]),
]


@pytest.mark.parametrize("vertices", CASES)
def test_vertices_compute_what_their_total_input_says(vertices: tuple[Edges, ...]) -> None:
    compute, literals = computed(*vertices)
    for bits in product((0, 1), repeat=INPUTS):
        assert [value(compute.nodes, literal, bits) for literal in literals] == by_hand(vertices, bits)


@pytest.mark.parametrize("seed", range(6))
def test_vertices_with_any_weights_on_two_bits(seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(40):
        first: Edges = [(0, random.integers(-3, 4) / 2), (1, random.integers(-6, 7) / 2), (2, 0.75)]
        weights = (random.integers(-8, 9, 4) + 0.25).tolist()
        second: Edges = list(zip((4, 1, 2, 0), weights, strict=True))
        vertices = (first, second)
        try:
            compute, literals = computed(*vertices)
        except CheckError:
            continue  # three bits that are not an AND of two
        for bits in product((0, 1), repeat=INPUTS):
            assert [value(compute.nodes, literal, bits) for literal in literals] == by_hand(vertices, bits)


NO_GATE: list[tuple[Edges, ...]] = [
    (*COPIES, [(4, 2.0), (5, 2.0), (6, 3.0), (0, -8.0)]),  # one counts for more
    (*COPIES, [(4, 2.0), (5, 2.0), (6, 2.0)]),  # without the constant
    (*COPIES, [(4, 2.0), (5, 2.0), (6, 2.0), (0, -2.0)]),  # two of three are enough
    (*COPIES, [(4, 2.0), (5, 2.0), (3, 2.0), (0, -6.0)]),  # an input, which is half as large
    (*COPIES, [(4, 2.0), (5, 2.0), (6, 2.0), (0, -20.0)]),  # never
    (*COPIES, [(4, 2.0), (5, 2.0), (6, 2.0), (0, 20.0)]),  # always
]


@pytest.mark.parametrize("vertices", NO_GATE)
def test_vertices_that_compute_no_gate_are_refused(vertices: tuple[Edges, ...]) -> None:
    with pytest.raises(CheckError, match="computes no gate"):
        computed(*vertices)


def test_what_is_read_must_have_been_computed() -> None:
    compute, _ = computed([(1, 2.0), (0, 1.0)])
    with pytest.raises(CheckError, match="does not compute it"):
        compute[5]
    with pytest.raises(CheckError, match="does not compute it"):
        computed([(5, 2.0), (0, 1.0)])


def test_no_more_inputs_than_vertices() -> None:
    arrays: dict[str, Any] = {"offsets": np.zeros(7)}
    assert [given_vertices({"inputs": n}, arrays, 2) for n in (0, 7)] == [3, 10]
    for count in (-1, 8):
        with pytest.raises(CheckError, match="number of inputs"):
            given_vertices({"inputs": count}, arrays, 2)


def test_there_is_room_for_nodes_in_proportion_to_the_graph() -> None:
    graph = Graph(np.zeros(1000), np.array([0, 1000]), np.zeros(1000, int), 5)
    assert graph.nodes().most == 131_072 + 64 * 1005


def test_as_many_edges_as_can_be_added_exactly() -> None:
    for count in (1 << 16, (1 << 16) + 1):
        weights = np.append(np.ones(count - 1), 1.0 - count)
        sources = np.append(np.full(count - 1, 1), 0)
        graph = Graph(weights, np.array([0, count]), sources, 2)
        if count == 1 << 16:  # from 1 - count - (count - 1) to 0, in steps of 2
            assert graph.flat_margin(np.array([2]), 1.5) == -1.5
        else:
            with pytest.raises(CheckError, match="too many edges"):
                graph.flat_margin(np.array([2]), 1.5)


@pytest.mark.parametrize("count", [2, 4, 7])
def test_totals_of_many_alike_are_those_of_all_signs(count: int) -> None:
    terms, constant = np.array([[*[4.0] * count, -6.0]]), np.array([[*[False] * count, True]])
    few, many = ([float(total[0]) for total in totals(terms, constant)]
                 for totals in (_totals_of_few, _totals_of_many))  # fmt: skip
    assert set(few) == set(many)
    assert len(many) == count + 1
