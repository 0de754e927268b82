"""Does a net in disguise compute its RASP program? The plain net is proved, and how far the other drifts.

The answer key holds the plain net and the direction of each of its coordinates, which are the features. The
plain net is proved by `rasp.program`. Beside it this follows the weights that are given, layer by
layer (`rasp.drift`), and bounds how far every feature may be from what the plain net has:

- **Scores** are off by D at most. Weights of what is selected are then equal up to a factor exp(2 D), and
  what is not selected, `gap` below, weighs exp(2 D - gap) at most. Where D is 0, nothing changes.
- **Steps.** Two units rise from 0 to 1 between two values. How far what they read is off matters only where
  it reaches into the rise; apart from that their difference is off by the difference of their errors.
- **Other units** hand on what is off, times their weights.
- **Decoys**, heads and units which the plain net has not, add what they add to directions that no row reads;
  or, so far as rows read them, to what is off.
- **Erased features.** A unit that reads a feature which is not negative, and takes it away again, leaves how
  far it was off. Its direction is free for others, so that there may be more features than dimensions.

In the end the greatest logit is right where each is off by less than a half, and a number that is read where
it is nearer to its own value than to any other.
"""

from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tapegrad_check.arithmetic import UP, Matrix, finite, product, rounding, step_of
from tapegrad_check.folder import require
from tapegrad_check.maps import row_of
from tapegrad_check.products import times
from tapegrad_check.rasp.disguised_heads import DisguisedHeads, Form
from tapegrad_check.rasp.tables import MIXED, START, WORD


class Read(NamedTuple):
    """What units read: rows over features, how far these may be off, what they should be, and rounding."""

    found: Matrix
    error: Matrix
    wanted: Matrix
    rounding: Matrix


class Disguised(DisguisedHeads):
    """The plain net, with the weights that are given followed beside it."""

    # Units

    def _units(self, layer: int) -> None:
        """What the plain units set, and how far those that are given are off."""
        self._attended()
        self.last_there = list(self.drift.features)
        """Features that are there when the last units read."""
        self.drift.loose |= bool(self.watched)
        super()._units(layer)
        drift, slots, scale = self.drift, self.slots.units[layer], self.slots.scales[layer]
        into, out = (self.weights[f"blocks.{layer}.mlp.W_{side}"] for side in ("in", "out"))
        read_by_all = drift.total(into)
        for total in (read_by_all, times(np.abs(out).T, read_by_all)):
            require(finite(total * UP).all(), f"numbers of units of layer {layer} may overflow")
        forms = [row_of(self.units[layer], row)[0] for row in range(len(self.units[layer]))]
        erased = self.slots.erased[layer]
        given = into[:, [*slots, *erased.values()]]
        by = np.concatenate([scale, np.ones(len(erased))])
        own = given / by
        wanted = self.rows([*forms, *({feature: 1.0} for feature in erased)])
        read = Read(*drift.read(own), wanted, drift.rounding(given) / by)
        off = drift.off_by(*read[:3]) + read.rounding
        size = (drift.largest(wanted) + off) * UP
        used = {*slots, *erased.values()}
        others = [slot for slot in range(len(out)) if slot not in used and out[slot].any()]
        sizes = drift.magnitude(into[:, others])
        places, terms = self.adds_to[layer], self.sums[layer]
        made = {
            place: self._made(place, row_of(terms, row)[0], forms, read, off)
            for row, place in enumerate(places)
        }
        adds = np.concatenate([out[slots] * scale[:, None], out[list(erased.values())]])
        step = drift.grid * step_of(own) * step_of(adds) if not off.any() and not others else 0.0
        total = times(np.abs(adds).T, size) + times(np.abs(out[others]).T, sizes)
        fits, more = np.zeros_like(adds), np.zeros_like(adds)
        if len(forms):
            shares = np.zeros((len(forms), len(places)))
            for row in range(len(places)):
                for unit, weight in row_of(terms, row)[0].items():
                    shares[unit, row] = weight
            fits[: len(forms)], more[: len(forms)] = product(shares, drift.directions[places])
        fits[len(forms) :] = -drift.directions[list(erased)]
        self._next_layer(erased, off[len(forms) :])
        drift.off = drift.off + times(drift.in_features((adds - fits).T, more.T), size)
        drift.off = (drift.off + times(self._directly(out[others]), sizes)) * UP
        for place, error in made.items():
            self._is_set(place, error, row_of(terms, places.index(place))[0], forms, size)
        self._settle(rounding(np.count_nonzero(out, axis=0), total, step))

    def _next_layer(self, erased: dict[int, int], off: Matrix) -> None:
        """Features that are erased are gone, but for how far they and their units were off."""
        left = np.zeros(len(self.drift.off))
        for feature, error in zip(erased, off, strict=True):
            kind = self.meanings[feature][0] if feature < len(self.meanings) else ""
            require(kind in ("bit", "raw") and feature in self.known, "what is erased may be negative")
            require(not self.drift.loose, "a net that watches for mixed values erases features")
            left[self.drift.place[feature]] = error
        self.layer += 1
        if any(self.slots.erased):
            self.alive -= erased.keys()
            self.alive |= set(self.adds_to[self.layer - 1])
            self.drift.replaced(self._there(), left)

    def _is_set(self, place: int, error: float, terms: Form, forms: list[Form], size: Matrix) -> None:
        """A coordinate is there from now on, off by so much. A step is never far above 1, whatever it reads;
        the same cannot be said of other sums, where bits do not belong together."""
        column = self.drift.place[place]
        if place == MIXED:
            self.flag += error
            self.drift.most[column] += sum(abs(weight) for weight in terms.values())
            return
        self.drift.off[column] += error
        self.drift.most[column] = 1.0
        self.bit = max(self.bit, error)
        if self.meanings[place][0] == "number" or (self.drift.loose and not self._step(forms, terms)):
            most = sum(abs(weight) * size[unit] for unit, weight in terms.items())
            self.drift.most[column] = max(1.0, float(most))

    def _made(self, place: int, terms: Form, forms: list[Form], read: Read, off: Matrix) -> float:
        """How far a coordinate that units set is off."""
        step = self._step(forms, terms) if place != MIXED else None
        if place == MIXED:
            return self._flag_drift(terms, forms, read)
        if step is None:
            return float(sum(abs(weight) * off[unit] for unit, weight in terms.items())) * UP
        up, down = sorted(terms, key=lambda unit: -terms[unit])
        group, number = self.meanings[place][1:]
        (source, gain), *_ = step.form.items()
        if self.meanings[source][0] == "raw":
            labels = self._label(group).tolist()
            centres = self.brought(source)[0]
            below, above = (
                [c for c, label in zip(centres, labels, strict=True) if (label >= number) == high]
                for high in (False, True)
            )
            return self._ramp(up, down, read, step.low, step.high, below, above, (source, gain))
        found, labels = self._labelled(group, *self.joint(self.parts(step.form)))
        below, above = (found[(labels >= number) == high] for high in (False, True))
        low = [Fraction(float(below.max()))] if below.size else []
        high = [Fraction(float(above.min()))] if above.size else []
        return self._ramp(up, down, read, step.low, step.high, low, high, None)

    def _ramp(
        self,
        up: int,
        down: int,
        read: Read,
        low: Fraction,
        high: Fraction,
        below: list[Fraction],
        above: list[Fraction],
        raw: tuple[int, float] | None,
    ) -> float:
        """How far the difference of two units is off, which is 0 for what is read below and 1 above."""
        drift, pair = self.drift, [up, down]
        apart = read.wanted[[up]] - read.wanted[[down]]
        rows, error = read.found[[up]] - read.found[[down]], read.error[[up]] + read.error[[down]]
        between = float(drift.off_by(rows, error, apart)[0] + read.rounding[pair].sum()) * UP
        require(between < 0.5, f"steps of layer {self.layer} may be off by {between:.2g}, which is too much")
        gain, slope, relative, absolute = Fraction(1), 0.0, 0.0, 0.0
        if raw is not None:
            column, gain = drift.place[raw[0]], Fraction(raw[1])
            slope = float((np.abs(read.found) + read.error)[pair, column].max()) * UP
            relative, absolute = float(drift.relative[column]), float(drift.off[column])
        others = self._apart_from(raw, pair, read)
        worst = between
        for centre in below:
            off = slope * (float(centre) * relative + absolute) + float(others[0])
            worst = max(worst, float(gain * centre - low) + off * UP)
        for centre in above:
            off = slope * (float(centre) * relative + absolute) + float(others[1])
            if float(gain * centre - high) < off * UP:
                worst = max(worst, off + float(others[0]) + slope * (float(centre) * relative + absolute))
        return worst * UP

    def _apart_from(self, raw: tuple[int, float] | None, units: list[int], read: Read) -> Matrix:
        """How far units are off, apart from what one coordinate that they read is off by."""
        whole = self.drift.whole
        if raw is not None:
            whole[self.drift.place[raw[0]]] = 0.0
        found, error = read.found[units], read.error[units]
        off = self.drift.largest(found - read.wanted[units]) + times(error, self.drift.most)
        return (off + times(np.abs(found) + error, whole) + read.rounding[units]) * UP

    def _flag_drift(self, terms: Form, forms: list[Form], read: Read) -> float:
        """How far the flag for mixed values may be off: at values that are 0 or 1 it stays down, at mixtures,
        which are 1/n from both but for uneven weights, it rises to 1 at least."""
        by_place: dict[int, list[int]] = {}
        for unit in terms:
            (place,) = forms[unit].keys() - {WORD, START}
            by_place.setdefault(place, []).append(unit)
        total = 0.0
        for place, units in by_place.items():
            ordered = sorted(units, key=lambda unit: -forms[unit].get(WORD, 0.0) / forms[unit][place])
            part = Fraction(1, max(2, self.program.length)) * Fraction(self.uneven[place])
            zero, one = [Fraction(0)], [Fraction(1)]
            for (up, down), below, above in (
                (ordered[:2], zero, [part]),
                (ordered[2:], [1 - part], one),
            ):
                gain = forms[up][place]
                low, high = (Fraction(-forms[unit].get(WORD, 0.0)) for unit in (up, down))
                ramp = self._ramp(up, down, read, low, high, below, above, (place, gain))
                # What comes after a mixture may be anything, and so may what is watched there.
                total += max(ramp, float(self._apart_from((place, gain), [up, down], read).sum()))
        return total * UP

    # The output

    def _output(self) -> None:
        """What is read from the plain net, and how far it is off."""
        super()._output()
        self.read_off = 0.0
        output, weights = self.program.output, self.weights["unembed.W_U"]
        drift = self.drift
        wanted = self.rows([row_of(self.unembedding, row)[0] for row in range(len(self.unembedding))])
        found, error = drift.read(weights)
        rounding = drift.rounding(weights)
        if self.program.nodes[output].kind != "mean":
            self.read_off = float((drift.off_by(found, error, wanted) + rounding).max()) * UP
            require(self.read_off < 0.5, f"logits may be off by {self.read_off:.2g}, which is too much")
        else:
            ((place, _),) = row_of(self.unembedding, 0)[0].items()
            column, whole = drift.place[place], drift.whole
            relative, absolute, whole[column] = drift.relative[column], drift.off[column], 0.0
            other = drift.largest(found - wanted) + times(error, drift.most) + rounding
            other = float((other + times(np.abs(found) + error, whole))[0]) + 2 * float(absolute)
            for low, high in pairwise(sorted(self.brought(place)[0])):
                room = (float(low + high) * float(relative) + other) * 2 * UP
                require(float(high - low) > room, "numbers that are read cannot be told apart")
            self.read_off = other
        if self.says_so:
            flag = self.weights["flag.W"]
            found, error = drift.read(flag)
            wanted = self.rows([{MIXED: 1.0}])
            self.flag += float((drift.off_by(found, error, wanted) + drift.rounding(flag))[0])
            require(self.flag < 0.5, "mixtures of values may go unnoticed")
