"""ANDs and ORs of many operands as one vertex: what is joined, and what it computes."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._verify import verify
from tapegrad.circuits import words
from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.learners import CircuitLearner
from tapegrad.targets.emulator.joined import joined
from tapegrad_check.folder import COMPUTES_SOURCE
from tests.check.altering import net_of

Tree = Callable[[CircuitBuilder, Sequence[Wire]], Wire]
TREES: dict[str, Tree] = {
    "any": words.any_of,
    "all": words.all_of,
    "none": lambda build, bits: build.not_(words.any_of(build, bits)),
    "not all": lambda build, bits: build.not_(words.all_of(build, bits)),
}
SIZES = {129: (2, 129 + 3), 300: (5, 129 + 129 + 45 + 3 + 3)}
"""Vertices and edges of trees with more than 128 operands: 128 and 1; and 128, 128 and 44."""


def of_inputs(tree: Tree, count: int, *, read_twice: bool = False) -> CircuitLearner:
    """Answers with the tree of all bits of x; if asked to, also with a part of it."""
    build = CircuitBuilder()
    x = [build.input(f"x{i}") for i in range(count)]
    build.input("random")
    build.input("guess")
    answer = tree(build, x)
    build.output("answer", answer)
    build.output("finished", tree(build, x[: count // 2]) if read_twice else build.constant(True))
    return CircuitLearner(build.circuit("tree"), count)


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize(
    "count", [2, 3, 7, 128, 129, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 127, 300))]
)
@pytest.mark.sampled(5)
def test_a_tree_of_up_to_128_operands_is_one_vertex(name: str, count: int) -> None:
    learner = of_inputs(TREES[name], count)
    vertices, edges = SIZES.get(count, (1, count + 1))
    assert joined(learner.circuit, 0).counts() == (vertices + 1, edges + 1)  # and "finished"
    random = np.random.default_rng(count)
    x = np.concatenate([np.zeros((1, count)), np.eye(count), 1 - np.eye(count), np.ones((1, count))])
    x = np.concatenate([x, random.integers(0, 2, (5, count))]).astype(np.uint8)
    report = verify(compile(learner, "emulator"), [(x, np.zeros(len(x), np.uint8))], engine="fast")
    assert report.agreed, report
    if count < 200:
        assert net_of(learner, "emulator", {}).verdict("emulator") == COMPUTES_SOURCE


def test_what_is_read_elsewhere_is_not_joined() -> None:
    learner = of_inputs(words.any_of, 8, read_twice=True)
    assert joined(learner.circuit, 0).counts() == (2, 4 + 4 + 1 + 1 + 1)
    assert net_of(learner, "emulator", {}).verdict("emulator") == COMPUTES_SOURCE


def test_a_chain_is_joined_in_threes() -> None:
    """Only trees that can be built again from their operands are."""

    def chain(build: CircuitBuilder, bits: Sequence[Wire]) -> Wire:
        found = bits[0]
        for bit in bits[1:]:
            found = build.and_(found, bit)
        return found

    learner = of_inputs(chain, 7)
    assert joined(learner.circuit, 0).counts()[0] == 3 + 1
    assert net_of(learner, "emulator", {}).verdict("emulator") == COMPUTES_SOURCE
