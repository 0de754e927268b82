"""Forged filters of `rcnn` whose weights add up to the right ones, as long as nothing is rounded."""

from pathlib import Path

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._saved import load, save
from tapegrad._sources import read
from tapegrad._verify import verify
from tapegrad.errors import BrokenNet
from tapegrad_check import CheckError, check
from tapegrad_check.folder import COMPUTES_SOURCE
from tests.check.forging import Saved


def hidden(net: Saved, digit: int, unit: int, size: float) -> Saved:
    """A digit that adds up a unit `size` times more, and another digit that takes this off again."""
    width = len(net.arrays["V4.bias"])
    rows, columns, values = (net.arrays[f"V4.{part}"] for part in ("rows", "columns", "values"))
    last = {int(c): float(v) for c, v in zip(net.arrays["V5.columns"], net.arrays["V5.values"], strict=True)}
    order = [
        digit,
        width,
        *(own for own in range(width) if own != digit),
    ]  # so that the checker rounds nothing
    place = {own: number for number, own in enumerate(order)}
    entries = {(place[int(r)], int(c)): float(v) for r, c, v in zip(rows, columns, values, strict=True)}
    entries |= {(0, unit): entries.get((0, unit), 0.0) + size, (1, unit): size}
    last[width] = -last[digit]
    forged = net.copy()
    for name, parts in (("V4", entries), ("V5", {(0, place[own]): v for own, v in last.items()})):
        places = sorted(parts)
        forged.arrays[f"{name}.rows"] = np.array([row for row, _ in places])
        forged.arrays[f"{name}.columns"] = np.array([column for _, column in places])
        forged.arrays[f"{name}.values"] = np.array([parts[one] for one in places])
    forged.arrays |= {"V4.bias": np.zeros(width + 1), "V5.width": np.array([width + 1])}
    return forged


@pytest.mark.parametrize(("digit", "unit"), [(1, 12), (1, 16)])
def test_digits_that_take_off_what_another_adds(digit: int, unit: int, tmp_path: Path) -> None:
    """Beside 2^50 the other digits of a value are rounded away."""
    save(compile(read("1RB1LB_1LA1RZ"), "rcnn", margin=4, encoding="ternary"), tmp_path / "own")
    genuine = Saved.of(tmp_path / "own")
    hidden(genuine, digit, unit, 1.0).write(tmp_path / "harmless")
    assert check(tmp_path / "harmless").verdict == COMPUTES_SOURCE
    assert verify(load(tmp_path / "harmless"), engine="reference").agreed
    hidden(genuine, digit, unit, 2.0**50).write(tmp_path / "forged")
    with pytest.raises(CheckError, match="sums of units are rounded so much"):
        check(tmp_path / "forged")
    assert not verify(load(tmp_path / "forged"), engine="reference").agreed
    with pytest.raises(BrokenNet, match="stands for no cell"):
        verify(load(tmp_path / "forged"), engine="fast")


def answer(net: Saved, question: int, value: float) -> float:
    """A question about a cell that holds this number, as the first two maps say."""
    arrays = net.arrays
    units, own = np.maximum(value + arrays["V1.bias"], 0), arrays["V2.rows"] == question
    return float(arrays["V2.values"][own] @ units[arrays["V2.columns"][own]] + arrays["V2.bias"][question])


def test_kinks_so_far_away_that_a_value_is_rounded(tmp_path: Path) -> None:
    """v + 2^48 has steps of 1/16 and, just below, of 1/32. What they differ by, 32 times and less a constant,
    is 0 where the checker looks, at the ends of a piece, and 1 in between."""
    save(compile(read("1RB1LB_1LA1RZ"), "rcnn", margin=4, encoding="ternary"), tmp_path / "own")
    genuine, question, value = Saved.of(tmp_path / "own"), 6, 13 / 27
    forged = genuine.copy()
    own = forged.arrays
    kinks, place = len(own["V1.bias"]), int(np.searchsorted(own["V2.rows"], question))
    cell = own["V1.columns"][own["V2.columns"][place]]
    own["V1.bias"] = np.append(own["V1.bias"], [2.0**48 + 7.125, 2.0**48 - 5.9375])
    own["V1.columns"] = np.append(own["V1.columns"], [cell, cell])
    own["V1.rows"], own["V1.values"] = np.arange(kinks + 2), np.ones(kinks + 2)
    for part, more in (("rows", [question] * 2), ("columns", [kinks, kinks + 1]), ("values", [32.0, -32.0])):
        own[f"V2.{part}"] = np.insert(own[f"V2.{part}"], place, more)
    own["V2.bias"], own["V2.width"] = own["V2.bias"].copy(), np.array([kinks + 2])
    own["V2.bias"][question] -= 418
    # The values lie from -1/9 to 121/81.
    size = np.bincount(own["V2.rows"], np.abs(own["V2.values"]) * 130 / 81) + np.abs(own["V2.bias"])
    rounding = np.finfo(float).eps * (np.bincount(own["V2.rows"]) + 2) * size
    forged.claims["bump_rounding"] = float(rounding.max())
    assert (answer(genuine, question, value), answer(forged, question, value)) == pytest.approx((0, 1))
    forged.write(tmp_path / "forged")
    with pytest.raises(CheckError, match="far below all values"):
        check(tmp_path / "forged")
