"""The independent checker of `relu` nets: from the saved arrays to "computes this circuit on every input".

It knows nothing of the compiler. Per kind of gate the weights must be the same in every gate (compared
as arrays), so it is enough to work out one gate of each kind, in exact rationals: its truth table, then
how far rounding can take it from there. Weights are 0 or between 2^-20 and 2^20 in size, so nothing
overflows: no sum reaches 2^64. A result too small to be normal may be flushed to 0, and is counted as such.
"""

from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.arithmetic import Rounded, Unit, near, off_from, relu, wider
from tapegrad_check.fields import array, number, whole
from tapegrad_check.folder import Arrays, Checked, require
from tapegrad_check.graph import Graph
from tapegrad_check.sources import Circuit, Model
from tapegrad_check.sources.circuits import ARITY, OPERANDS
from tapegrad_check.targets import compact
from tapegrad_check.targets.layers import Wired, wired

# Bit 2a + b of a kind is the gate's value for operands a, b.
NAMES = {
    0: "FALSE",
    8: "AND",
    6: "XOR",
    14: "OR",
    1: "NOR",
    9: "XNOR",
    3: "NOT",
    7: "NAND",
    12: "ID",
    15: "TRUE",
}
CORRECTIONS = {
    "thirds": (Fraction(1, 3), Fraction(2, 3)),
    "quarters": (Fraction(1, 4), Fraction(3, 4)),
    "none": None,
}
"""Thresholds of the corrections that the loader knows, before they are rounded to the precision."""
SMALLEST, LARGEST = 2.0**-20, 2.0**20
"""The sizes that a weight may have, unless it is 0."""
STATEMENT = (
    "for every input, every value after every circuit layer is within after_correction of the circuit's bit, "
    "and every output within at_outputs of -1 or +1"
)
ENTRIES = {"correction", "padded_width"}
ARRAYS = {"gates.kinds", "gates.wires"}


def check(
    config: dict[str, Any], own: Arrays, certificate: dict[str, Any], source: Model | None, graph: Graph
) -> Checked:
    """What was re-derived, in sentences; `CheckError` names the first thing that does not hold."""
    if "form" in config:
        return compact.check(config, own, certificate, source, graph)
    found = layered(config, own, graph)
    net, shape, units = found.net, found.shape, found.units
    gadgets = _gadgets(found)
    correction = _correction(units, shape, config["correction"], net.dtype)
    _outputs(units, shape)
    for kind, gadget in gadgets.items():
        _truth_table(kind, gadget)
    statements = [
        f"all {len(net.biases):,} units read places that exist in the layer before them",
        f"the weights of every one of {len(shape.layer):,} gates, taken as exact rationals, give the gate's "
        f"truth table ({', '.join(NAMES[kind] for kind in gadgets)})",
        "every output is 2 z - 1 of its own gate",
    ]
    if source is not None:
        require(isinstance(source, Circuit), "a relu net is that of a circuit")
        assert isinstance(source, Circuit)
        named = (source.inputs, source.outputs) == (net.inputs, net.outputs)
        require(named, "inputs or outputs have other names than in the circuit")
        _same_circuit(found, source)
        statements.append(
            "layer by layer, every gate holds a wire of the circuit, and the last layer its outputs, by name"
        )
    error, outputs = _errors(gadgets, correction, net.dtype, certificate)
    counts = {NAMES[kind]: int((found.kinds == kind).sum()) for kind in gadgets}
    require(certificate["gates"] == counts, "the certificate counts other gates")
    statements.append(
        f"in {net.dtype}, at any depth and for every input, a value is within {float(error):.3g} "
        f"of its bit after each layer, and an output within {float(outputs):.3g} of -1 or +1"
    )
    return Checked(statements)


class _Shape(NamedTuple):
    """Where things stand: layers of units, and for each gate its circuit layer and its place there."""

    inputs: int
    per_layer: int
    depth: int
    bounds: NDArray[np.int64]
    layer: NDArray[np.int64]
    place: NDArray[np.int64]
    widths: NDArray[np.int64]
    """Values in the layer that each circuit layer reads, the inputs first."""

    def units(self, part: int) -> NDArray[np.int64]:
        """For each gate, where the given ReLU layer of its circuit layer starts."""
        return self.bounds[self.per_layer * self.layer + part]


def _per_layer(config: dict[str, Any]) -> int:
    named = isinstance(config["correction"], str) and config["correction"] in CORRECTIONS
    require(named, "the correction is unknown")
    return 2 if config["correction"] == "none" else 4


def _shape(config: dict[str, Any], net: Wired) -> _Shape:
    for numbers in (net.values, net.biases):
        size = np.abs(numbers)
        inside = (size == 0) | (size >= SMALLEST) & (size <= LARGEST)
        require(inside.all(), "a weight or a bias is too large or too small")
    per_layer = _per_layer(config)
    bounds, inputs, sizes = net.bounds, len(net.inputs), np.diff(net.bounds)
    layers = len(sizes) - 1
    require(layers > 0 and layers % per_layer == 0, "the number of layers does not fit the correction")
    depth, widths = layers // per_layer, sizes[1:-1:per_layer]
    require(sizes[-1] == widths[-1], "the outputs are not those of the last layer")
    if per_layer == 4:
        fits = (sizes[2:-1:4] == 2 * widths).all() and (sizes[3:-1:4] == widths).all()
        require(fits, "a correction does not fit its layer")
    if config["padded_width"] is not None:
        whole(config["padded_width"], "the width", int(sizes[:-1].max()), 1 << 31)
    layer = np.repeat(np.arange(depth), widths)
    place = np.arange(len(layer)) - np.repeat(np.cumsum(widths) - widths, widths)
    return _Shape(inputs, per_layer, depth, bounds, layer, place, np.append(inputs, widths))


class _Units(NamedTuple):
    """Units of at most two inputs, by their places in the layer before; what is not used is 0."""

    inputs: NDArray[np.int64]
    rows: NDArray[np.floating]
    """Two weights and a bias each."""

    @classmethod
    def of(cls, net: Wired) -> "_Units":
        counts = np.diff(net.starts)
        require((counts <= 2).all(), "a unit reads more than two values")
        begins = net.of_layers(np.concatenate([[0], len(net.inputs) + net.bounds])[:-2])
        inputs, rows = np.zeros((len(counts), 2), np.int64), np.zeros((len(counts), 3), net.values.dtype)
        unit = net.of_entries(np.arange(len(counts)))
        side = np.arange(len(unit)) - net.starts[unit]
        inputs[unit, side], rows[unit, side] = net.places - begins[unit], net.values
        rows[:, 2] = net.biases
        # No place is later than the layer before, so that none is too large.
        require((inputs >= 0).all(), "a unit reads outside the layer before")
        return cls(inputs, rows)


def _all_read(units: _Units, shape: _Shape, part: int, readers: NDArray[np.int64]) -> None:
    """Every unit of the layers that these units read is read by some of them, so nothing stays unchecked."""
    seen = np.zeros(len(units.rows), bool)
    for side in (0, 1):
        at = shape.units(part - 1) + units.inputs[readers, side]
        seen[at[units.rows[readers, side] != 0]] = True
    layers = np.arange(shape.depth) * shape.per_layer + part - 1
    expected = (shape.bounds[layers + 1] - shape.bounds[layers]).sum()
    require(seen.sum() == expected, "a unit is read by no other")


class Layered(NamedTuple):
    """The layers of a net: its units, and the gates that they are said to be, with what they read."""

    net: Wired
    shape: _Shape
    units: _Units
    kinds: NDArray[np.uint8]
    wires: NDArray[np.int32]
    hidden: tuple[NDArray[np.int64], NDArray[np.int64]]
    """The hidden units that each gate reads; 0 for one that it does not read."""
    operands: NDArray[np.int64]
    """What the first of them reads, in the circuit layer before."""

    def circuit(self) -> Arrays:
        """The arrays of the layered circuit."""
        left, right = self.operands.astype(np.int32).T
        bounds = np.concatenate([[0], np.cumsum(self.shape.widths[1:])])
        gates = {"kinds": self.kinds, "left": left, "right": right, "wires": self.wires}
        return {name: np.ascontiguousarray(own) for name, own in gates.items()} | {"bounds": bounds}


def layered(config: dict[str, Any], own: Arrays, graph: Graph) -> Layered:
    """The layers of a net of the paper's form; that its gates are right is not said."""
    require(config.keys() == ENTRIES, "the net has other entries than a relu net")
    require(own.keys() == ARRAYS, "arrays are others")
    net = wired(graph)
    shape = _shape(config, net)
    gates = len(shape.layer)
    kinds, wires = (
        array(own, "gates.kinds", np.uint8, (gates,)),
        array(own, "gates.wires", np.int32, (gates,)),
    )
    units, out = _Units.of(net), shape.units(1) + shape.place
    # A hidden unit counts only where the gate reads it; one that is not read belongs to another gate.
    read = units.rows[out, :2] != 0
    first, second = (np.where(read[:, side], shape.units(0) + units.inputs[out, side], 0) for side in (0, 1))
    operands = np.where(read[:, :1], units.inputs[first], 0)
    return Layered(net, shape, units, kinds, wires, (first, second), operands)


class _Gadget(NamedTuple):
    hidden: tuple[Unit, Unit]
    out: Unit


def _gadgets(found: Layered) -> dict[int, _Gadget]:
    """One gate of each kind, once all gates are known to read their operands and to agree in weights."""
    units, shape, kinds = found.units, found.shape, found.kinds
    known = np.isin(kinds, list(NAMES))
    require(known.all(), "there is a gate of no known kind")
    out = shape.units(1) + shape.place
    read = units.rows[out, :2] != 0
    _all_read(units, shape, 1, out)
    used = read[:, 1:] & (units.rows[found.hidden[1], :2] != 0)
    right = units.inputs[found.hidden[1]] == found.operands
    require((right | ~used).all(), "a unit does not read the operands of its gate")
    parts = [np.where(read[:, [side]], units.rows[at], 0) for side, at in enumerate(found.hidden)]
    rows = np.concatenate([*parts, units.rows[out]], axis=1)
    gadgets = {}
    for kind in np.unique(kinds).tolist():
        own = rows[kinds == kind]
        require((own == own[0]).all(), f"gates of kind {NAMES[kind]} differ in their weights")
        numbers = [Fraction(float(number)) for number in own[0]]
        first, second, last = (tuple(numbers[i : i + 3]) for i in (0, 3, 6))
        gadgets[kind] = _Gadget((first, second), last)  # type: ignore[arg-type]
    return gadgets


def _truth_table(kind: int, gadget: _Gadget) -> None:
    for a, b in product((0, 1), repeat=2):
        h = [max(Fraction(0), w * a + v * b + bias) for w, v, bias in gadget.hidden]
        value = max(Fraction(0), gadget.out[0] * h[0] + gadget.out[1] * h[1] + gadget.out[2])
        require(
            value == kind >> (2 * a + b) & 1, f"the weights of {NAMES[kind]} are wrong for inputs {a}, {b}"
        )
        ignored = any(unit[1] for unit in gadget.hidden) and OPERANDS[kind] < 2
        require(not ignored, f"{NAMES[kind]} reads an operand that it does not have")


def _correction(units: _Units, shape: _Shape, name: str, dtype: str) -> _Gadget | None:
    """The correction that stands behind every gate: two units that read the gate, and their difference."""
    thresholds = CORRECTIONS[name]
    if thresholds is None:
        return None
    cut, after = (Fraction(float(np.dtype(dtype).type(float(threshold)))) for threshold in thresholds)
    slope, one, zero = 1 / (thresholds[1] - thresholds[0]), Fraction(1), Fraction(0)
    wanted = _Gadget(((one, zero, -cut), (one, zero, -after)), (slope, -slope, zero))
    if not len(shape.layer):
        return wanted
    out = shape.units(3) + shape.place
    cuts = [shape.units(2) + units.inputs[out, side] for side in (0, 1)]
    _all_read(units, shape, 3, out)
    rows = np.concatenate([units.rows[at] for at in (*cuts, out)], axis=1)
    reads = all((units.inputs[cut, 0] == shape.place).all() for cut in cuts)
    require(reads, "a correction does not read its own gate")
    require((rows == rows[0]).all(), "corrections differ in their weights")
    low, high, last = (tuple(Fraction(float(x)) for x in rows[0, i : i + 3]) for i in (0, 3, 6))
    fits = low[:2] == high[:2] == (1, 0) and last[1:] == (-last[0], 0)
    require(fits, "a correction is not s relu(z - low) - s relu(z - high)")
    require(_Gadget((low, high), last) == wanted, f"the correction is not that of {name!r}")  # type: ignore[arg-type]
    return wanted


def _outputs(units: _Units, shape: _Shape) -> None:
    at = np.arange(shape.bounds[-2], shape.bounds[-1])
    own = units.inputs[at, 0] == np.arange(len(at))
    require(own.all() and (units.rows[at] == (2, 0, -1)).all(), "an output is not 2 z - 1 of its gate")


def _same_circuit(found: Layered, circuit: Circuit) -> None:
    """By induction over layers: if the layer before holds the wires it says, so does this one."""
    shape, kinds, wires = found.shape, found.kinds, found.wires
    starts = np.cumsum(shape.widths) - shape.widths
    held = np.append(np.arange(shape.inputs), wires)
    gate = wires - shape.inputs
    known = (wires >= 0) & (gate < len(circuit.kinds))
    require(known.all(), "a gate holds a wire that the circuit does not have")
    own = gate >= 0
    own[own] = kinds[own] == circuit.kinds[gate[own]]
    identity = kinds == 12
    for side, theirs in enumerate((circuit.left, circuit.right)):
        used = ARITY[kinds] > side
        reads = held[starts[shape.layer[used]] + found.operands[used, side]]
        identity[used] &= reads == wires[used]
        asked = np.full(len(reads), -1)
        real = gate[used] >= 0
        asked[real] = theirs[gate[used][real]]
        own[used] &= reads == asked
    require((own | identity).all(), "a gate is not the one that the circuit has for its wire")
    last = wires[len(wires) - shape.widths[-1] :]
    require(np.array_equal(last, circuit.output_wires), "the last layer does not hold the circuit's outputs")


CLAIMS = {"statement", "gates", "unit_roundoff", "radius", "allowance", "after_gates", "after_correction",
          "at_outputs", "pre_activations"}  # fmt: skip


def _number(claim: Any) -> Fraction:
    return Fraction(number(claim, "a claim of the certificate"))


def _errors(
    gadgets: dict[int, _Gadget], correction: _Gadget | None, dtype: str, claims: dict[str, Any]
) -> tuple[Fraction, Fraction]:
    """The induction: inputs are exact; if values are within the claimed error before a circuit layer,
    gates bring them to within the allowance, and the correction back to within the error."""
    rounded = Rounded(dtype)
    require(claims.keys() == CLAIMS and claims["statement"] == STATEMENT, "the certificate has other claims")
    radius = None if correction is None else min(-correction.hidden[0][2], 1 + correction.hidden[1][2])
    claimed = None if claims["radius"] is None else _number(claims["radius"])
    fits = claimed is None if radius is None else claimed is not None and 0 < claimed <= radius
    require(fits, "the correction has a smaller radius than the certificate says")
    names = ("allowance", "after_gates", "after_correction", "at_outputs")
    allowance, after_gates, error, at_outputs = (_number(claims[name]) for name in names)
    require(min(allowance, after_gates, error) >= 0, "an error in the certificate is negative")
    require(_number(claims["unit_roundoff"]) == rounded.u, "the certificate is for another precision")
    worst = Fraction(0)
    spans = {NAMES[kind] for kind in gadgets}
    require(claims["pre_activations"].keys() == spans, "the certificate has ranges for other gates")
    for kind, gadget in gadgets.items():
        low, high = (_number(x) for x in claims["pre_activations"][NAMES[kind]])
        for a, b in product((0, 1), repeat=2):
            pre = [rounded.unit(unit, near(a, error), near(b, error)) for unit in gadget.hidden]
            out = rounded.unit(gadget.out, relu(pre[0]), relu(pre[1]))
            worst = max(worst, off_from(relu(out), kind >> (2 * a + b) & 1))
            read = [x for x, weight in zip(pre, gadget.out, strict=False) if weight]
            inside = all(low <= x[0] and x[1] <= high for x in (*read, out))
            require(inside, f"a unit of {NAMES[kind]} can leave the range in the certificate")
    require(worst <= after_gates, f"gates can be {float(worst):.3g} off, more than the certificate says")
    require(after_gates <= allowance, "gates can be further off than the allowance of the correction")
    mended = after_gates if correction is None else _mended(correction, rounded, allowance)
    require(
        mended <= error, f"corrected values can be {float(mended):.3g} off, more than the certificate says"
    )
    read_out = (Fraction(2), Fraction(0), Fraction(-1))
    zero = Fraction(0), Fraction(0)
    found = max(off_from(rounded.unit(read_out, near(bit, error), zero), 2 * bit - 1) for bit in (0, 1))
    require(found <= at_outputs < 1, "outputs can be further off than the certificate says")
    return error, at_outputs


def _mended(correction: _Gadget, rounded: Rounded, off: Fraction) -> Fraction:
    """How far from its bit a value can be after the correction, if it was `off` before. A 0 silences both
    units; for a 1 both are active, z cancels in s (z - low) - s (z - high), and rounding remains."""
    noise = step = Fraction(0)
    for unit, slope in zip(correction.hidden, correction.out[:2], strict=True):
        silent = rounded.unit(unit, near(0, off), (Fraction(0), Fraction(0)))
        x = wider((1 + unit[2], 1 + unit[2]), off)
        require(silent[1] <= 0 < x[0], "the allowance is outside the radius of the correction")
        slack = rounded.slack(x)
        noise += abs(slope) * slack + rounded.product_slack(slope, wider(x, slack))
        step += slope * unit[2]
    found = wider((step, step), noise)
    return off_from(wider(found, rounded.slack(found)), 1)
