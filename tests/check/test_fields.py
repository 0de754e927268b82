"""Values, arrays and sparse maps of a folder: what is read, and a bad one for every condition."""

from typing import Any

import numpy as np
import pytest

from tapegrad_check.fields import array, number, text, texts, whole
from tapegrad_check.folder import CheckError
from tapegrad_check.maps import maps_of


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


def two_maps() -> dict[str, np.ndarray[Any, Any]]:
    """One of 3 rows and 4 columns, whose middle row is empty, and one of a single row."""
    return {
        "it.sizes": np.array([[3, 4, 3], [1, 2, 2]], np.int64),
        "it.rows": np.array([0, 0, 2, 0, 0], np.int32),
        "it.columns": np.array([0, 3, 1, 0, 1], np.int32),
        "it.values": np.array([1, -2, 0.5, 4, 8], np.float32),
        "it.bias": np.array([1, 2, 3, -1], np.float32),
    }


def test_maps_are_cut_where_their_sizes_say() -> None:
    first, second = maps_of(two_maps(), "it")
    assert [first.row(row) for row in range(3)] == [([0, 3], [1, -2], 1), ([], [], 2), ([1], [0.5], 3)]
    assert second.row(0) == ([0, 1], [4, 8], -1)
    assert (len(first), len(second), first.width, second.width) == (3, 1, 4, 2)


def test_maps_may_be_empty() -> None:
    arrays = two_maps()
    arrays["it.sizes"] = np.insert(arrays["it.sizes"], 1, [0, 0, 0], axis=0)
    first, empty, last = maps_of(arrays, "it")
    assert (len(first), len(empty), len(last), empty.width) == (3, 0, 1, 0)
    assert last.row(0) == ([0, 1], [4, 8], -1)


def test_totals_and_steps_of_rows() -> None:
    """By hand; a row without entries has its bias alone."""
    first, _ = maps_of(two_maps(), "it")
    assert first.totals(np.array([1.0, 3, 5, 7])).tolist() == [1 + 14, 0, 1.5]
    assert first.steps().tolist() == [1, 2, 0.5]


@pytest.mark.parametrize(
    ("name", "place", "value", "said"),
    [
        ("sizes", (0, 0), -1, "is negative"),
        ("sizes", (1, 1), -1, "is negative"),
        ("sizes", (0, 0), 4, "'it.bias' has another shape"),
        ("sizes", (1, 0), 2, "'it.bias' has another shape"),
        ("sizes", (0, 2), 2, "'it.rows' has another shape"),
        ("sizes", (1, 2), 3, "'it.rows' has another shape"),
        ("rows", 0, -1, "outside its map"),
        ("rows", 2, 3, "outside its map"),
        ("rows", 1, 1, ""),
        ("rows", 0, 1, "outside its map"),
        ("columns", 0, -1, "outside its map"),
        ("columns", 1, 4, "outside its map"),
        ("columns", 4, 2, "outside its map"),
        ("columns", 1, 0, "two entries at one place"),
        ("columns", 4, 0, "two entries at one place"),
        ("values", 3, 0, "is 0"),
        ("values", 4, 0, "is 0"),
    ],
)
def test_bad_maps(name: str, place: Any, value: int, said: str) -> None:
    arrays = two_maps()
    arrays[f"it.{name}"][place] = value
    if not said:
        assert len(maps_of(arrays, "it")) == 2
        return
    with pytest.raises(CheckError, match=said):
        maps_of(arrays, "it")


@pytest.mark.parametrize("name", ["sizes", "rows", "columns", "values", "bias"])
def test_parts_of_maps_have_their_types_and_shapes(name: str) -> None:
    arrays = two_maps()
    for other, said in (
        (arrays[f"it.{name}"].astype(np.float64), "is not of type"),
        (arrays[f"it.{name}"][..., :-1], "has another shape"),
    ):
        with pytest.raises(CheckError, match=said):
            maps_of(arrays | {f"it.{name}": other}, "it")
