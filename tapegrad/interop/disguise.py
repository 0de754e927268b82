"""Nets of RASP programs in disguise: the same algorithm, harder to see, with the truth kept beside it.

`disguise` turns the residual stream, the inner spaces of heads and the order and scale of units; lets
features share directions; adds noise to weights, and heads and units that do not matter. The net is handed
out only if it is proved to compute its program, for every input up to the length, in single precision: by
`tapegrad_check`, which bounds how far everything may drift from the plain net. Where that fails, it is
refused with the reason, and with the most noise, or the greatest length, that would do.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from tapegrad._compile import Compiled, compile
from tapegrad.attention.codes import MIXED
from tapegrad.errors import InputError, Refused
from tapegrad.interop.disguise_parts import BASES, Features, Matrix, all_at_once, basis, sharing
from tapegrad.interop.disguised import AnswerKey, Arrays, DisguisedNet, Weights
from tapegrad.interop.sequences import sequence_net
from tapegrad.networks.form import Affine
from tapegrad.networks.saving import arrays_of, to_json
from tapegrad.rasp.program import RaspProgram
from tapegrad.targets.decoder.sequences import SequenceNet
from tapegrad.targets.net import Net
from tapegrad_check.folder import CheckError, NotProved
from tapegrad_check.rasp.answer_key import CLAIMED, PLAIN, circuit_of, claims_of, decoys_of, proved
from tapegrad_check.rasp.disguise import Disguised

DECOY_FEATURES = 4
"""Directions that decoys write to, and no row reads."""
ROWS_OF_A_DECOY = 2
COOLER = 0.125
"""What scores are multiplied by where they are not exact anyway: drift costs less, and gaps of 16 will do."""
HALVINGS = 16
ROOM = 1.01
"""By how much claimed bounds are above those that were found."""
SCALES = (-3, 4)
"""Powers of two that units are scaled by."""


@dataclass(frozen=True)
class Options:
    """What is asked for."""

    basis: str = "none"
    superposition: int | None = None
    noise: float = 0.0
    decoys: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.basis not in BASES:
            raise InputError(f"there is no basis {self.basis!r}", advice=f"Choose one of {', '.join(BASES)}.")
        if not 0 <= self.noise < 1 or not 0 <= self.decoys <= 256 or not 0 <= self.seed < 1 << 63:
            raise InputError(
                "noise must be at least 0 and below 1, decoys 0 to 256, and the seed not negative",
                advice="Noise is a fraction of the root mean square of each matrix, 1e-6 for instance.",
            )
        if self.superposition is not None and not 1 <= self.superposition <= 4096:
            raise InputError("a superposition is a number of dimensions, 1 to 4,096", advice="Give one.")


def disguise(
    compiled: Compiled | Net,
    *,
    basis: str = "none",
    superposition: int | None = None,
    noise: float = 0.0,
    decoys: int = 0,
    seed: int = 0,
) -> DisguisedNet:
    """A net of a RASP program in disguise, proved to compute it, with its answer key. `basis` is `quads` or
    `hadamard`, which round nothing, or `rotation`; `superposition` is the number of dimensions that features
    share; `noise` a fraction of the root mean square of each matrix; `decoys` a number of heads, and of units
    in each layer."""
    net, options = sequence_net(compiled), Options(basis, superposition, noise, decoys, seed)
    try:
        return _proved(net, options)
    except (CheckError, NotProved) as reason:
        what = reason.what if isinstance(reason, CheckError) else str(reason)
        raise Refused(
            f"in this disguise the net cannot be proved: {what}", advice=_advice(net, options)
        ) from reason


def _advice(net: SequenceNet, options: Options) -> str:
    """The most noise that will do, else the greatest length."""

    def holds(own: SequenceNet, given: Options) -> bool:
        try:
            _proved(own, given)
        except (CheckError, NotProved, Refused):
            return False
        return True

    if options.noise and holds(net, replace(options, noise=0.0)):
        least, most = 0.0, options.noise
        for _ in range(HALVINGS):
            middle = most / 2 if least == 0 else (least + most) / 2
            least, most = (middle, most) if holds(net, replace(options, noise=middle)) else (least, middle)
            if least and most < 1.1 * least:
                break
        return f"A noise of {least:.2g} will do." if least else "Without noise it can."
    low, high = 0, net.program.length
    while high - low > 1:
        middle = (low + high) // 2
        shorter = compile(replace(net.program, length=middle), "decoder").net
        assert isinstance(shorter, SequenceNet)
        low, high = (middle, high) if holds(shorter, options) else (low, middle)
    return f"A length of {low} will do." if low else "Leave out part of the disguise."


def _proved(net: SequenceNet, options: Options) -> DisguisedNet:
    """The net in disguise and its key, or the reason why it cannot be proved. Scores as they are, if that
    will do; else lower ones in the last layers, from some layer on."""
    layers = net.parts.layers
    attend = [number for number, layer in enumerate(layers) if layer.heads]
    heats = [[1.0] * len(layers)]
    heats += [[1.0] * first + [COOLER] * (len(layers) - first) for first in reversed(attend)]
    for number, heat in enumerate(heats):
        try:
            return _attempted(net, options, heat)
        except CheckError:
            if number == len(heats) - 1:
                raise
    raise AssertionError


def _attempted(net: SequenceNet, options: Options, heat: list[float]) -> DisguisedNet:
    made = _Making(net, options, heat)
    values, centres = net.read
    program: RaspProgram = net.program
    found = DisguisedNet(
        weights=made.weights(),
        vocabulary=program.vocabulary,
        outputs=values,
        length=program.length,
        causal=program.causal,
        centres=None if centres is None else tuple(centres.tolist()),
    )
    data, arrays = made.key()
    # What depends on all weights is worked out by the checker, and left out of this first reading.
    proof = proved(found.config(), dict(found.weights), (data, arrays), complete=False)
    data |= answers(proof, data["features"])
    # Double precision may round otherwise on another machine.
    claims = {name: own * ROOM if name in CLAIMED else own for name, own in claims_of(proof).items()}
    return replace(found, key=AnswerKey(data, arrays), claims=claims)


def answers(proof: Disguised, names: list[str]) -> dict[str, Any]:
    """The parts of a key that follow from all others."""
    return {"decoys": decoys_of(proof), "circuit": circuit_of(proof, names)}


class _Making:
    """Weights under way: the plain net, directions of features, and what is drawn."""

    def __init__(self, net: SequenceNet, options: Options, heat: list[float]) -> None:
        self.net, self.options, self.heat = net, options, heat
        self.random = np.random.default_rng(options.seed)
        self.extra = DECOY_FEATURES if options.decoys else 0
        self.plain = net.parts
        features = self.plain.width + self.extra
        width = options.superposition or features
        kind = options.basis
        self.features: Features = (
            sharing(net, kind, self.extra, width, self.random)
            if width < features
            else all_at_once(kind, features, width, self.random)
        )
        layers = self.plain.layers
        self.erased = self.features.erased or tuple(() for _ in layers)
        self.width = width
        self.decoy_layers = self._decoy_layers()
        self.heads = max(1, *(len(own.heads) + self.decoy_layers.count(n) for n, own in enumerate(layers)))
        rows = [max(len(own.key), len(own.value)) for layer in layers for own in layer.heads]
        self.rows = -(-max([*rows, ROWS_OF_A_DECOY]) // 4) * 4
        self.units = max(
            1, *(len(own.units) + len(self.erased[n]) + self._decoy_units(n) for n, own in enumerate(layers))
        )
        self.head_slots: list[list[int]] = []
        self.unit_slots: list[list[int]] = []
        self.erasing: list[list[list[int]]] = []
        self.scales: list[Matrix] = []

    def _decoy_layers(self) -> list[int]:
        """The layer of each decoy head: those that have heads, in turn."""
        places = [number for number, layer in enumerate(self.plain.layers) if layer.heads]
        if self.options.decoys and not places:
            raise Refused("the net has no heads, and decoys are modelled on them", advice="Leave out decoys.")
        return [places[number % len(places)] for number in range(self.options.decoys)]

    def _decoy_units(self, layer: int) -> int:
        return self.options.decoys if len(self.plain.layers[layer].units) else 0

    def rotation(self, size: int) -> Matrix:
        """A basis of the inner space of a head. Scores are products of sums, so that one round is what keeps
        them without rounding."""
        kind = self.options.basis
        return basis("quads" if kind == "hadamard" else kind, size, self.random)

    def read(self, own: Affine) -> Matrix:
        """Columns of weights that read what the rows of a plain map read."""
        return np.ascontiguousarray(self.read_rows(own).T)

    def weights(self) -> Weights:
        """All weights, under the names of TransformerLens."""
        model, directions = self.plain, self.features.directions
        positions = model.table(self.net.program.length + 1).astype(np.float64)
        found: dict[str, Matrix] = {
            "embed.W_E": self.read_rows(model.embedding),
            "pos_embed.W_pos": positions @ directions[: model.width],
        }
        for number in range(len(model.layers)):
            for name, own in (self._attention(number) | self._units(number)).items():
                found[f"blocks.{number}.{name}"] = own
        found["unembed.W_U"] = self.read(model.unembedding)
        if any(MIXED in np.asarray(layer.to) for layer in model.layers):
            found["flag.W"] = directions[[MIXED]].T.copy()
        return {name: self._noisy(own).astype(np.float32) for name, own in found.items()}

    def read_rows(self, own: Affine) -> Matrix:
        """Rows that are written for each row of a plain map."""
        return np.asarray(own.dense().weight, np.float64) @ self.features.directions[: self.plain.width]

    def _noisy(self, own: Matrix) -> Matrix:
        """Weights that are not 0, each off by up to a fraction of their root mean square."""
        if not self.options.noise or not own.any():
            return own
        scale = np.sqrt((own[own != 0] ** 2).mean())
        drawn = self.random.uniform(-1, 1, own.shape) * self.options.noise * scale
        return np.where(own != 0, own + drawn, own)

    def _attention(self, number: int) -> dict[str, Matrix]:
        layer, directions = self.plain.layers[number], self.features.directions
        sides = {side: np.zeros((self.heads, self.width, self.rows)) for side in "QKV"}
        out = np.zeros((self.heads, self.rows, self.width))
        hidden = self.options.basis != "none" or self.options.decoys
        places = self.random.permutation(self.heads) if hidden else np.arange(self.heads)
        self.head_slots.append(places[: len(layer.heads)].tolist())
        decoys = places[len(layer.heads) :][: self.decoy_layers.count(number)]
        for slot, head in zip(self.head_slots[-1], layer.heads, strict=True):
            for side, own in zip("QKV", (head.query, head.key, head.value), strict=True):
                sides[side][slot, :, : len(own)] = self.read(own) * (
                    self.heat[number] if side == "Q" else 1.0
                )
            out[slot, : len(head.to)] = directions[np.asarray(head.to)]
        for slot in decoys.tolist():
            self._decoy_head(number, slot, sides, out)
        for slot in range(self.heads):
            asks, moves = self.rotation(self.rows), self.rotation(self.rows)
            for side, turn in (("Q", asks), ("K", asks), ("V", moves)):
                sides[side][slot] = sides[side][slot] @ turn
            out[slot] = moves.T @ out[slot]
        return {f"attn.W_{side}": own for side, own in sides.items()} | {"attn.W_O": out}

    def _decoy_head(self, number: int, slot: int, sides: dict[str, Matrix], out: Matrix) -> None:
        """Attention as some head of this layer has it; values are two features, which go where nobody
        reads."""
        heads = self.plain.layers[number].heads
        model = heads[self.random.integers(len(heads))]
        for side, own in (("Q", model.query), ("K", model.key)):
            sides[side][slot, :, : len(own)] = self.read(own) * (self.heat[number] if side == "Q" else 1.0)
        known = np.unique(np.concatenate([own.columns for own in (model.query, model.key, model.value)]))
        for row in range(ROWS_OF_A_DECOY):
            sides["V"][slot, :, row] = self.features.directions[self.random.choice(known)]
            out[slot, row] = self._nowhere()

    def _nowhere(self) -> Matrix:
        """A direction that no row reads."""
        sign = self.random.choice([-1.0, 1.0])
        return sign * self.features.directions[self.plain.width + self.random.integers(self.extra)]

    def _units(self, number: int) -> dict[str, Matrix]:
        layer, directions = self.plain.layers[number], self.features.directions
        into, out = np.zeros((self.width, self.units)), np.zeros((self.units, self.width))
        count, erased = len(layer.units), self.erased[number]
        hidden = self.options.basis != "none" or self.options.decoys
        places = (self.random.permutation(self.units) if hidden else np.arange(self.units)).tolist()
        powers = self.random.integers(*SCALES, count) if hidden else np.zeros(count)
        scales = np.asarray(2.0**powers, np.float64)
        slots, erasers = places[:count], places[count : count + len(erased)]
        decoys = places[count + len(erased) :][: self._decoy_units(number)]
        into[:, slots] = self.read(layer.units) * scales
        sums = layer.sums.dense().weight.astype(np.float64)
        out[slots] = (sums.T @ directions[np.asarray(layer.to)]) / scales[:, None]
        into[:, erasers] = directions[list(erased)].T
        out[erasers] = -directions[list(erased)]
        for slot in decoys:
            row = layer.units.dense().weight[self.random.integers(count)].astype(np.float64)
            into[:, slot] = row @ directions[: self.plain.width]
            out[slot] = self._nowhere() * 2.0 ** -np.ceil(np.log2(np.abs(row).sum()))
        self.unit_slots.append(slots)
        self.scales.append(scales)
        self.erasing.append([[feature, unit] for feature, unit in zip(erased, erasers, strict=True)])
        return {"mlp.W_in": into, "mlp.W_out": out}

    def key(self) -> tuple[dict[str, Any], Arrays]:
        """The answer key, once weights are made."""
        names = [*self.net.names, *(f"decoy[{number}]" for number in range(self.extra))]
        data = {
            "version": 1,
            "done": asdict(self.options),
            "features": names,
            "meanings": _meanings(self.net, names),
            "slots": {
                "heads": self.head_slots,
                "units": self.unit_slots,
                "heat": self.heat,
                "erased": self.erasing,
            },
            "plain": self.net.config(),
            "network": to_json(self.net.network),
            "certificate": self.net.certificate(),
        }
        arrays: Arrays = {"directions": self.features.directions}
        arrays |= {f"scales.{number}": own for number, own in enumerate(self.scales)}
        return data, arrays | {PLAIN + name: own for name, own in arrays_of(self.net.network).items()}


def _meanings(net: SequenceNet, names: Sequence[str]) -> dict[str, str]:
    count = net.parts.width
    meant = [net.meaning(place) for place in range(count)] + ["nothing: decoys write here"] * (
        len(names) - count
    )
    return dict(zip(names, meant, strict=True))
