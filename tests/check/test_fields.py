"""Values, arrays and sparse maps of a folder: what is read, and a bad one for every condition."""

from typing import Any

import numpy as np
import pytest

from tapegrad_check.fields import array, number, text, texts, whole
from tapegrad_check.folder import CheckError
from tapegrad_check.maps import Map, map_by_entries


def test_single_values() -> None:
    assert [whole(value, "it", -1, 2) for value in (-1, 0, 2)] == [-1, 0, 2]
    for value in (-2, 3, True, 1.0, "1", None):
        with pytest.raises(CheckError, match="it is not a whole number"):
            whole(value, "it", -1, 2)
    assert [whole(value, "it") for value in (0, 1 << 62)] == [0, 1 << 62]
    for value in (-1, (1 << 62) + 1):
        with pytest.raises(CheckError, match="it is not a whole number"):
            whole(value, "it")
    assert [number(value, "it") for value in (1, 0.5, -(2**900), (1 << 1000) - 1)]
    for value in (True, "1", 1 << 1000, -(1 << 1000), float("inf"), float("nan"), None):
        with pytest.raises(CheckError, match="it is not a finite number"):
            number(value, "it")
    grid = {"a": np.zeros((2, 3), np.int8)}
    assert array(grid, "a", np.int8, (None, 3)) is grid["a"]
    for shape in ((None, 2), (3, None), (2, 3, None), (None,)):
        with pytest.raises(CheckError, match="another shape"):
            array(grid, "a", np.int8, shape)
    with pytest.raises(CheckError, match="'b' is missing"):
        array(grid, "b", np.int8, (None, 3))
    with pytest.raises(CheckError, match="not of type int16"):
        array(grid, "a", np.int16, (None, 3))


def test_texts() -> None:
    assert text("one", "it") == "one"
    assert texts(["one", "two"], "these") == ("one", "two")
    assert texts([], "these") == ()
    for value in (1, None, ["one"]):
        with pytest.raises(CheckError, match="it is not text"):
            text(value, "it")
    for value in ("one", ["one", 2], None, ("one",)):
        with pytest.raises(CheckError, match="these are not texts"):
            texts(value, "these")
    with pytest.raises(CheckError, match="two of these are the same"):
        texts(["one", "one"], "these")


def parts() -> dict[str, np.ndarray[Any, Any]]:
    """A map of 3 rows and 4 columns, whose middle row is empty."""
    return {
        "rows": np.array([0, 0, 2]),
        "columns": np.array([0, 3, 1]),
        "values": np.array([1, -2, 0.5], np.float32),
        "bias": np.array([1, 2, 3], np.float32),
    }


def the_map(arrays: dict[str, np.ndarray[Any, Any]]) -> Map:
    return map_by_entries("it", **arrays, width=4)


def test_a_map_has_its_rows() -> None:
    own = the_map(parts())
    assert [own.row(row) for row in range(3)] == [([0, 3], [1, -2], 1), ([], [], 2), ([1], [0.5], 3)]
    assert (len(own), own.width) == (3, 4)
    assert own.rows(1, 3).row(1) == ([1], [0.5], 3)


def test_totals_and_steps_of_rows() -> None:
    """By hand; a row without entries has its bias alone."""
    own = the_map(parts())
    assert own.totals(np.array([1.0, 3, 5, 7])).tolist() == [1 + 14, 0, 1.5]
    assert own.steps().tolist() == [1, 2, 0.5]


@pytest.mark.parametrize(
    ("name", "place", "value", "said"),
    [
        ("rows", 0, -1, "outside its map"),
        ("rows", 2, 3, "outside its map"),
        ("rows", 1, 1, ""),
        ("rows", 0, 1, "outside its map"),
        ("columns", 0, -1, "outside its map"),
        ("columns", 1, 4, "outside its map"),
        ("columns", 1, 0, "two entries at one place"),
        ("values", 1, 0, "is 0"),
        ("values", 2, 0, "is 0"),
    ],
)
def test_bad_maps(name: str, place: int, value: int, said: str) -> None:
    arrays = parts()
    arrays[name][place] = value
    if not said:
        assert len(the_map(arrays)) == 3
        return
    with pytest.raises(CheckError, match=said):
        the_map(arrays)
