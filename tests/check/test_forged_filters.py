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
