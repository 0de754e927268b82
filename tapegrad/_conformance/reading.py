"""The reader: which layer went wrong first, at which unit, and by how much."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import FormatError


@dataclass(frozen=True)
class Fault:
    """The first entry of the first layer that is not what it must be."""

    layer: str
    place: tuple[int, ...]
    """Of the entry: pattern and unit; of a grid row, column and unit."""
    got: float
    wanted: float
    wrong: int
    """How many entries of the layer are wrong."""
    entries: int
    units: str = ""
    """What the layer's units are for."""

    @property
    def by(self) -> float:
        """How far it is off."""
        return abs(self.got - self.wanted)

    def __str__(self) -> str:
        *row, unit = self.place
        where = ".".join(map(str, row)) or "0"
        what = f" ({self.units})" if self.units else ""
        return (
            f"layer {self.layer}{what}, unit {unit}, pattern {where}: {self.got:.9g} instead of "
            f"{self.wanted:.9g}, off by {self.by:.3g}; {self.wrong:,} of {self.entries:,} entries are wrong"
        )

    def to_json(self) -> dict[str, Any]:
        """For scripts; what is no number is a text."""
        found = asdict(self) | {"by": self.by}
        return {k: str(v) if isinstance(v, float) and not np.isfinite(v) else v for k, v in found.items()}


def first_fault(
    names: Sequence[str],
    expected: Mapping[str, NDArray[Any]],
    got: Mapping[str, NDArray[Any]],
    units: Mapping[str, str] | None = None,
) -> Fault | None:
    """Compares the layers that there are, in order; what is no number is wrong."""
    for name in names:
        if name not in got:
            continue
        wanted, own = np.asarray(expected[name], np.float64), np.asarray(got[name]).astype(np.float64)
        if own.shape != wanted.shape:
            raise FormatError(f"layer {name!r} has the shape {own.shape}, and should have {wanted.shape}")
        differs = own != wanted  # also where it is NaN
        if differs.any():
            place = tuple(int(n) for n in np.argwhere(differs)[0])
            what = (units or {}).get(name, "")
            numbers = float(own[place]), float(wanted[place])
            return Fault(name, place, *numbers, int(differs.sum()), differs.size, what)
    return None
