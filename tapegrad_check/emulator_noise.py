"""The independent checker of `emulator` nets with noise-tolerant memory: Definition 7, Lemma 4's algebra."""

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.emulator_flat import check_graph, edges_of, flat_margin, require

CLOSE = Decimal(10) ** -60


def check_noise_tolerant(config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> list[str]:
    """What was re-derived, in sentences."""
    given = 1 + int(config["inputs"]) + 1
    samples = len(arrays["written"])
    check_graph(arrays, given)
    table = [Decimal(weight) for weight in config["weights"]]
    with localcontext(prec=80):
        root = Decimal(3).sqrt()
        two, three = Decimal(2), Decimal(3)
        path = [1 / (4 * root**t) for t in range(5)]
        before, after = -(two**-81) * three**-9, -(two**-41) * three**-9
        _algebra(path, before, after)
        is_weight = {
            name: np.array([abs(weight / wanted - 1) < CLOSE for weight in table])[arrays["kinds"]]
            for name, wanted in (
                *((f"path {t}", weight) for t, weight in enumerate(path)),
                ("read", Decimal(128)),
                ("before", before),
                ("after", after),
                ("hold", two ** (two / 3) / 4 - two**-243 * three**-29 * (given - 1)),
                ("answer", Decimal("0.49")),
            )
        }
    components = 2 * (given - 1) * samples
    first = given + 5 * np.arange(components)
    sources = arrays["sources"]
    for vertex, source, name in ((0, 0 * first, "path 0"), (1, first, "path 1"), (2, first, "read")):
        edges = edges_of(arrays, given, first + vertex, 1)[:, 0]
        require((sources[edges] == source).all(), f"{name}: an edge comes from elsewhere")
        require(is_weight[name].take(edges).all(), f"{name}: an edge has another weight")
    counts = {name: int(mask.sum()) for name, mask in is_weight.items()}
    for name in ("path 2", "path 3", "path 4", "before", "after"):
        require(counts[name] == components, f"{name}: not every component has its edge")
    output = edges_of(
        arrays, given, np.array([given + len(arrays["offsets"]) - 2]), components + samples + 1
    )[0]
    require(is_weight["path 4"].take(output[:components]).all(), "a component gives another share")
    require(is_weight["hold"].take(output[components:-1]).all(), "the output is not held at 1/2")
    require(is_weight["answer"].take(output[-1]), "the answer has another weight")
    weights = np.array(table, np.float64)[arrays["kinds"]]
    computing = _computing(arrays, given, weights, given + 5 * components)
    margin = flat_margin(arrays, given, weights, computing)
    require(margin >= 0.5, "a vertex that computes is not flat")
    return [
        f"each of {len(computing):,} vertices that compute is flat on all Boolean inputs, by {margin:g}",
        f"all {components:,} components have the weights of Definition 7",
        "controls close a component before it is written and after; writing doubles its weights (Lemma 4)",
    ]


def _algebra(path: list[Decimal], before: Decimal, after: Decimal) -> None:
    """What v_4 gets, open, is -2 times the first control's weight; after doubling, of the second's. The rate
    2^(716/3) 3^24 adds to each weight once its size at output 1/2 and label 1."""
    for factor, control in ((1, before), (2, after)):
        value = Decimal(1)
        for weight in path[:3]:
            value = (factor * weight * value) ** 3
        require(abs(factor * path[3] * value / (-2 * control) - 1) < CLOSE, "a control does not close")
    with localcontext(prec=80):
        rate = Decimal(2) ** (Decimal(716) / 3) * Decimal(3) ** 24
        slope = 3 * Decimal(2) ** (Decimal(-2) / 3)  # of the cube at its value 1/2; the loss has slope -1
        values = [Decimal(1)]
        for weight in path[:4]:
            values.append((weight * values[-1]) ** 3)
        for t in range(5):
            change = rate * slope * path[4] * values[4] * Decimal(3) ** (4 - t) / path[t]
            require(abs(change / path[t] - 1) < CLOSE, "writing does not double a weight")


def _computing(
    arrays: dict[str, NDArray[Any]], given: int, weights: NDArray[np.float64], first: int
) -> NDArray[Any]:
    """Vertices behind the components all of whose weights are whole numbers: copies of inputs and gates."""
    whole = (weights == np.round(weights)) & (np.abs(weights) <= 16)
    ends = np.repeat(np.arange(given, given + len(arrays["offsets"]) - 1), np.diff(arrays["offsets"]))
    broken = np.unique(ends[~whole])
    return np.setdiff1d(np.arange(first, given + len(arrays["offsets"]) - 1), broken)
