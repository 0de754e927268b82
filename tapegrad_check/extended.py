"""The independent checker of trained extended networks: what their weights come to.

The graph is checked as that of a `tape` net. Then, from the weights alone: they show a halted machine, its
result tape holds theta, and the primary network with this theta gives the output and the loss claimed. That
training led to these weights is not shown here; training again, from the same data, shows it.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet
from tapegrad_check import tape

Arrays = dict[str, NDArray[Any]]

NEAR = 1e-9
"""How far weights and outputs may be from what they should be; what double precision leaves is far less."""


def check(config: dict[str, Any], arrays: Arrays, claims: dict[str, Any]) -> list[str]:
    """What was re-derived, in sentences; `BrokenNet` names the first thing that does not hold."""
    graph = {name.removeprefix("graph."): a for name, a in arrays.items() if name.startswith("graph.")}
    s, T, H, z = (arrays[f"weight.{name}"] for name in ("s", "T", "H", "z"))
    about_graph = tape.check(config, graph, claims)
    deviation = _halted(config, graph, s, T, H)
    _require(np.array_equal(z, arrays["y"]), "the labels that training copied are not the labels")
    theta = _theta(config, arrays["result_places"], T)
    _require(np.array_equal(theta, claims["theta"]), "the result tape does not hold the theta claimed")
    output = _output(config["primary"], theta, arrays["x"])
    _require(_near(output, claims["output"]), "the primary network does not give the output claimed")
    loss = float(np.sum((output - arrays["y"]) ** 2) / 2)
    _require(_near(loss, claims["final_loss"]), "the output does not give the loss claimed")
    _require(_near(deviation, claims["deviation"]), "the weights are farther from their ideal values")
    return [
        *about_graph,
        f"the weights show a halted machine, at most {deviation:.3g} from their ideal values",
        f"its result tape holds {len(theta)} numbers, which are the theta claimed",
        f"the primary network with this theta has a loss of {loss:g}, below B_stop",
    ]


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise BrokenNet(otherwise, advice="Train and save the network again.")


def _near(found: Any, claimed: Any) -> bool:
    expected = np.asarray(claimed, float)
    return np.shape(found) == expected.shape and bool(np.allclose(found, expected, rtol=NEAR, atol=NEAR))


def _halted(config: dict[str, Any], graph: Arrays, s: NDArray, T: NDArray, H: NDArray) -> float:
    """How far the weights are from a halted machine: s at a vertex, a head on each tape, symbols -1 and +1,
    and under the heads what the vertex shows."""
    tapes, cells, read_only = graph["down"].shape[1], int(config["cells"]), int(config["read_only"])
    _require(0 <= read_only <= tapes, "there are more read-only tapes than tapes")
    _require(s.shape == graph["vertex_weight"].shape, "s has not one entry for each vertex")
    _require(T.shape == (cells, tapes - read_only) and H.shape == (cells, tapes), "T or H has another shape")
    vertex, heads = int(np.argmax(s)), np.argmax(H, axis=0)
    at_vertex, at_heads = np.zeros_like(s), np.zeros_like(H)
    at_vertex[vertex] = 1.0
    at_heads[heads, np.arange(tapes)] = 1.0
    distances = (np.abs(s - at_vertex), np.abs(H - at_heads), np.abs(np.abs(T) - 1))
    deviation = max(float(distance.max(initial=0.0)) for distance in distances)
    _require(deviation < NEAR, f"some weight is {deviation:.3g} away from what a machine can show")
    _require(graph["vertex_weight"][vertex] < 0, "s stands at a vertex that does not halt")
    under = np.sign(T[heads[read_only:], np.arange(tapes - read_only)])
    shown = graph["down"][vertex, read_only:]
    _require(np.array_equal(under, shown), "under the heads lie other symbols than the vertex shows")
    return deviation


def _theta(config: dict[str, Any], places: NDArray, T: NDArray) -> NDArray[np.floating]:
    """The numbers on the result tape, cell by cell."""
    bits, tapes, cells, signs = places.T
    rows, columns = cells + int(config["cells"]) // 2, tapes - int(config["read_only"])
    inside = (rows >= 0) & (rows < T.shape[0]) & (columns >= 0) & (columns < T.shape[1])
    _require(bool(np.all(inside)), "a bit of the result lies beside its tape")
    _require(np.array_equal(bits, np.arange(len(bits))), "the bits of the result are not in order")
    form = config["weight_format"]
    found = (T[rows, columns] * signs > 0).astype(float)
    return _fixed(found, form) if form["kind"] == "fixed" else _floating(found, form)


def _fixed(bits: NDArray, form: dict[str, Any]) -> NDArray[np.floating]:
    """Two's complement, least significant bit first."""
    width = int(form["width"])
    places = 2.0 ** np.arange(width)
    places[-1] *= -1
    return bits.reshape(-1, width) @ places / 2.0 ** int(form["fraction"])


def _floating(bits: NDArray, form: dict[str, Any]) -> NDArray[np.floating]:
    """Mantissa, exponent, sign; the numbers with exponent 0 have no hidden bit."""
    m, e = int(form["mantissa"]), int(form["exponent"])
    rows = bits.reshape(-1, m + e + 1)
    exponent = rows[:, m : m + e] @ 2.0 ** np.arange(e)
    whole = rows[:, :m] @ 2.0 ** np.arange(m) + np.where(exponent > 0, 2.0**m, 0.0)
    unit = 2.0 ** (np.maximum(exponent, 1) - (2 ** (e - 1) - 1) - m)
    return np.where(rows[:, -1] > 0, -1.0, 1.0) * whole * unit


def _output(primary: dict[str, Any], theta: NDArray, x: NDArray) -> NDArray[np.floating]:
    """Fully connected layers: matrix rows one after the other in theta, the bias last in each."""
    sizes, used = [int(size) for size in primary["sizes"]], 0
    for layer, (columns, rows) in enumerate(pairwise(sizes), 1):
        matrix = theta[used : used + rows * (columns + 1)].reshape(rows, columns + 1)
        used += matrix.size
        x = x @ matrix[:, :-1].T + matrix[:, -1]
        if primary["activation"] == "step":
            x = (x >= 0).astype(float)
        elif layer < len(sizes) - 1:
            x = np.maximum(x, 0.0)
    _require(used == len(theta), "theta has another length than the primary network takes")
    return x
