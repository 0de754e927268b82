"""A forged filter of `rcnn` that is right as long as nothing is rounded."""

from pathlib import Path

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._saved import save
from tapegrad._sources import read
from tapegrad_check import CheckError, check
from tests.check.forging import Saved


def answer(net: Saved, question: int, value: float) -> float:
    """A question about a cell that holds this number, as the first two maps say."""
    arrays = net.arrays
    units, own = (
        np.maximum(value + arrays["network.filter.0.bias"], 0),
        arrays["network.filter.1.rows"] == question,
    )
    return float(
        arrays["network.filter.1.values"][own] @ units[arrays["network.filter.1.columns"][own]]
        + arrays["network.filter.1.bias"][question]
    )


def test_kinks_so_far_away_that_a_value_is_rounded(tmp_path: Path) -> None:
    """v + 2^48 has steps of 1/16 and, just below, of 1/32. What they differ by, 32 times and less a constant,
    is 0 where the checker looks, at the ends of a piece, and 1 in between."""
    save(compile(read("1RB1LB_1LA1RZ"), "rcnn", margin=4, form="paper"), tmp_path / "own")
    genuine, question, value = Saved.of(tmp_path / "own"), 6, 13 / 27
    forged = genuine.copy()
    own = forged.arrays
    kinks, place = (
        len(own["network.filter.0.bias"]),
        int(np.searchsorted(own["network.filter.1.rows"], question)),
    )
    cell = own["network.filter.0.columns"][own["network.filter.1.columns"][place]]
    own["network.filter.0.bias"] = np.append(
        own["network.filter.0.bias"], [2.0**48 + 7.125, 2.0**48 - 5.9375]
    )
    own["network.filter.0.columns"] = np.append(own["network.filter.0.columns"], [cell, cell])
    own["network.filter.0.rows"], own["network.filter.0.values"] = np.arange(kinks + 2), np.ones(kinks + 2)
    for part, more in (("rows", [question] * 2), ("columns", [kinks, kinks + 1]), ("values", [32.0, -32.0])):
        own[f"network.filter.1.{part}"] = np.insert(own[f"network.filter.1.{part}"], place, more)
    own["network.filter.1.bias"] = own["network.filter.1.bias"].copy()
    own["network.filter.1.bias"][question] -= 418
    # The values lie from -1/9 to 121/81.
    size = np.bincount(
        own["network.filter.1.rows"], np.abs(own["network.filter.1.values"]) * 130 / 81
    ) + np.abs(own["network.filter.1.bias"])
    rounding = np.finfo(float).eps * (np.bincount(own["network.filter.1.rows"]) + 2) * size
    forged.claims["bump_rounding"] = float(rounding.max())
    assert (answer(genuine, question, value), answer(forged, question, value)) == pytest.approx((0, 1))
    forged.write(tmp_path / "forged")
    with pytest.raises(CheckError, match="so far below all values"):
        check(tmp_path / "forged")
