"""The loss of an extended network with its primary network (Welper, section 5), written down once more, as
terms: data become bits by the networks of appendix B and lie on read-only tapes; bits on a tape that training
writes become numbers, which the primary network has for weights."""

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.folder import Arrays, require
from tapegrad_check.graph import Graph
from tapegrad_check.losses import Switches, cutoff, extended, index_of, node_of, require_loss, value_of
from tapegrad_check.targets import tape
from tapegrad_check.terms import Term, Terms

Form = dict[str, Any]
"""A number format, by the names of its numbers of bits."""


class Places(NamedTuple):
    """Where bits lie. Rows of a tape are counted from its first cell."""

    blank: NDArray[np.float64]
    """The read-only tapes where all bits of the data are 0, row by row."""
    bits: NDArray[np.int64]
    rows: NDArray[np.int64]
    changes: NDArray[np.float64]
    """By how much each place of the data changes, on its tape, if its bit is 1."""
    ends: NDArray[np.int64]
    """The row of each bit of the result."""
    signs: NDArray[np.float64]
    """What it is there, on its tape, if it is 1."""

    @classmethod
    def of(cls, graph: Graph, cells: int, tapes: int) -> "Places":
        """Those of a network, one tape for each place; on it a bit of the data that is 0 shows a 0."""
        blank, changes, signs = (value_of(graph, n) for n in ("blank_tapes", "data_changes", "result_signs"))
        bits, ends = (index_of(graph, name) for name in ("data_bits", "result_cells"))
        rows = node_of(graph, "data_cells", "put").arrays["to"].astype(np.int64)
        given, places = len(blank), len(bits)
        fits = blank.shape == (given, cells) and changes.shape == (given, places) == (given, len(rows))
        fits = fits and signs.shape == (tapes - given, len(ends)) and 0 < given < tapes
        require(fits, "bits of the data or of the result have no place on tapes")
        on = np.abs(changes).argmax(axis=0)
        require(
            all(((own != 0).sum(axis=0) == 1).all() for own in (changes, signs))
            and (np.abs(signs).sum(axis=0) == 1).all(),
            "a bit of the data or of the result lies on no tape, or on several",
        )
        shown = blank[on, rows]
        require((np.abs(blank) == 1).all(), "a read-only tape holds something else than symbols")
        require((changes[on, np.arange(places)] == -2 * shown).all(), "a place of the data does not show a 0")
        require(len({*zip(on.tolist(), rows.tolist(), strict=True)}) == places, "two bits share a cell")
        return cls(blank, bits, rows, changes, ends, signs)


def require_network(
    graph: Graph, config: dict[str, Any], arrays: Arrays, found: dict[str, Any], own: Arrays, places: Places
) -> None:
    """Refuses a graph that is not this loss, trained by the rule of a tape."""
    terms, y = Terms(), arrays["y"].shape
    s, T, H, z, x = (terms.input(name) for name in ("s", "T", "H", "z", "x"))
    labels = z.detach("labels", "dotted in figure 1")
    forms = config["data_format"], config["weight_format"]
    data = _data(terms, forms[0], places, [(x, arrays["x"].size), (labels, arrays["y"].size)])
    theta = _theta(terms, forms[1], places, T)
    output = primary(config["primary"], theta, x, len(arrays["x"]))
    loss = tape.traced(terms, graph, (s, data.join(T, -1), H), found, own)
    bounds = Switches(smallest(forms[0]) ** 2, *(float(found["constants"][name]) for name in ("low", "high")))
    shapes = {name: arrays[name].shape for name in ("s", "T", "H", "z", "x", "y")}
    whole = extended(loss, output, z, labels, y, bounds)
    rule = tape.TRAINING._replace(stop=bounds.low)
    require_loss(graph, terms, whole, shapes, rule, {"data": data, "theta": theta})


def _data(terms: Terms, form: Form, places: Places, numbers: Sequence[tuple[Term, int]]) -> Term:
    """The read-only tapes."""
    first, second = (own.reshape(2, count, 1) for own, count in numbers)
    bits = quantise(form, first.join(second, -2)).reshape(2, sum(n for _, n in numbers) * width(form), 1)
    changes = bits.turned().take(places.bits, "data_bits") * terms.constant(
        places.changes, "data_changes", "of the tapes, where a bit is 1"
    )
    blank = terms.constant(places.blank, "blank_tapes", "the tapes where all bits are 0")
    filled = blank.put(changes, places.rows, "the data on their tapes", "data_cells").turned()
    return filled.detach("data", "the read-only tapes")


def _theta(terms: Terms, form: Form, places: Places, T: Term) -> Term:
    """The weights of the primary network, off the result tape."""
    signs = terms.constant(places.signs, "result_signs", "of a bit that is 1, on its tape")
    found = (T.turned().take(places.ends, "result_cells") * signs).turned().total()
    count = len(places.ends) // width(form)
    bits = (1 - (found < 0)).reshape(1, count, width(form))
    return dequantise(form, bits).reshape(2, count).detach()


# Numbers and bits, least significant first


def width(form: Form) -> int:
    """Bits of a number."""
    return form["width"] if form["kind"] == "fixed" else 1 + form["exponent"] + form["mantissa"]


def unit(form: Form, stored: int = 0) -> float:
    """The distance of neighbours among floating-point numbers with this exponent."""
    return 2.0 ** (max(stored, 1) - (2 ** (form["exponent"] - 1) - 1) - form["mantissa"])


def smallest(form: Form) -> float:
    """The smallest number above 0."""
    return 2.0 ** -form["fraction"] if form["kind"] == "fixed" else unit(form)


def quantise(form: Form, numbers: Term) -> Term:
    """Of a column of numbers the bits, row by row."""
    ramp = form["continuous"]
    if form["kind"] == "fixed":  # two's complement
        top = np.eye(form["width"])[-1]
        shifted = numbers * 2 ** form["fraction"] + 2 ** (form["width"] - 1)
        return _digits(shifted, form["width"], ramp) * (1 - 2 * top) + top
    m, e = form["mantissa"], form["exponent"]
    units = np.array([unit(form, stored) for stored in range(2**e)])
    count, size = len(units) - 1, numbers.relu() + (-numbers).relu()
    fits = _step(size - units[1:] * 2**m, units[:-1], ramp)
    last = fits.mapped(np.eye(count, count + 1, 1)) + np.eye(count + 1)[0]
    last = last - fits.mapped(np.eye(count, count + 1))
    scaled = (last * (size / units)).mapped(np.ones((count + 1, 1)))
    mantissa = _digits(scaled - fits.take([0]) * 2**m, m, ramp)
    exponent = _digits(fits.mapped(np.ones((count, 1))), e, ramp)
    negative = 1 - _step(numbers, unit(form, 1) / 2, ramp)
    return mantissa.join(exponent, -1).join(negative, -1)


def _step(t: Term, epsilon: Any, continuous: bool) -> Term:
    """1 from 0 on; a ramp or a jump."""
    return 1 - cutoff(t + epsilon, 0.0, epsilon) if continuous else 1 - (t < 0)


def _digits(number: Term, count: int, continuous: bool) -> Term:
    """The digits of whole numbers, from the top down."""
    digits = []
    for place in reversed(range(count)):
        digit = _step(number - 2**place, 1.0, continuous)
        number = number - digit * 2**place
        digits.insert(0, digit)
    return reduce(lambda row, digit: row.join(digit, -1), digits)


def dequantise(form: Form, bits: Term) -> Term:
    """The column of numbers."""
    if form["kind"] == "fixed":
        places = 2.0 ** np.arange(form["width"])
        places[-1] *= -1
        return bits.mapped(places[:, None]) / 2 ** form["fraction"]
    m, e = form["mantissa"], form["exponent"]
    exponent, sign = [bits.take([m + j]) for j in range(e)], bits.take([m + e])
    power = reduce(mul, (1 + bit * (2.0 ** (2**j) - 1) for j, bit in enumerate(exponent)))
    hidden = 1 - reduce(mul, (1 - bit for bit in exponent))
    places = np.append(2.0 ** np.arange(m), np.zeros(1 + e))
    whole = bits.mapped(places[:, None]) + hidden * 2**m
    return (1 - 2 * sign) * whole * power * (2 - hidden) * unit(form) / 2


# Primary networks


def primary(own: dict[str, Any], theta: Term, x: Term, samples: int) -> Term:
    """f_theta(x): a learner's answers, or fully connected layers, of which theta has the matrices row by row,
    the bias last in each."""
    if "gates" in own:
        return _answers(own, theta, x, samples)
    used = 0
    for layer, (columns, rows) in enumerate(pairwise(own["sizes"]), 1):
        places = used + np.arange(rows * (columns + 1)).reshape(rows, columns + 1)
        used += places.size
        x = x.mapped(theta.take(places[:, :-1]).turned()) + theta.take(places[:, -1])
        if own["activation"] == "step":
            x = 1 - (x < 0)
        elif own["activation"] == "sign":
            x = 2 * (x > 0) - 1
        elif layer < len(own["sizes"]) - 1:
            x = x.relu()
    return x


def _answers(own: dict[str, Any], theta: Term, x: Term, samples: int) -> Term:
    """The gates, level by level, on what is remembered and a sample; each a polynomial of its operands."""
    memory, gates = own["memory"], np.array(own["gates"], np.int64).reshape(-1, 3)
    given = memory + own["inputs"]
    level = [0] * given
    for _, a, b in gates.tolist():
        level.append(1 + max(level[a], level[b]))
    values = x.terms.constant(np.zeros((samples, given + len(gates))))
    values = values.put(x > 0, np.arange(memory, given)).put(theta > 0, np.arange(memory))
    for depth in range(1, 1 + max(level, default=0)):
        here = np.flatnonzero(np.array(level[given:]) == depth)
        table, *operands = gates[here].T
        a, b = (values.take(wires) for wires in operands)
        e = (table >> np.arange(4)[:, None] & 1).astype(float)
        value = (1 - a) * (e[0] * (1 - b) + e[1] * b) + a * (e[2] * (1 - b) + e[3] * b)
        values = values.put(value, given + here)
    return 2 * values.take([own["answer"]]) - 1
