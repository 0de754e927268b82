"""Products of matrices in the checker: judged by their results, and taken in one place."""

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegrad_check
from tapegrad_check import CheckError
from tapegrad_check.products import times

CHECKER = Path(tapegrad_check.__file__).parent
PRODUCTS = {
    "dot",
    "vdot",
    "inner",
    "matmul",
    "vecdot",
    "matvec",
    "vecmat",
    "einsum",
    "tensordot",
    "multi_dot",
}


def bare_products(text: str) -> list[int]:
    """The lines where matrices are multiplied."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if (isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult)) or (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PRODUCTS
        ):
            found.append(node.lineno)
    return sorted(found)


def test_a_bare_product_is_found() -> None:
    assert bare_products("a = b @ c\na @= b\nnp.dot(a, b)\na.dot(b)\nnp.einsum('ij,jk', a, b)\nouter(a)") == [
        1,
        2,
        3,
        4,
        5,
    ]


def test_matrices_are_multiplied_in_one_place() -> None:
    """Elsewhere a flag that means nothing would refuse a genuine net."""
    files = [path for path in CHECKER.rglob("*.py") if path.name != "products.py"]
    assert len(files) > 50
    assert {str(path): lines for path in files if (lines := bare_products(path.read_text()))} == {}


def test_a_product_is_that_of_numpy() -> None:
    random = np.random.default_rng(0)
    left, right = random.integers(-9, 9, (3, 4)), random.integers(-9, 9, (4, 2))
    wanted = [[sum(int(left[i, k]) * int(right[k, j]) for k in range(4)) for j in range(2)] for i in range(3)]
    for dtype in (np.int64, np.float32, np.float64):
        assert times(left.astype(dtype), right.astype(dtype)).tolist() == wanted


LARGE = np.float32(2.0**127)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([[1, np.nan]], [[1], [1]]),
        ([[1, 1]], [[0], [np.nan]]),
        ([[0, np.inf]], [[1], [1]]),
        ([[0, np.inf]], [[1], [0]]),
        ([[LARGE, LARGE]], [[1], [1]]),
        ([[-LARGE, -LARGE]], [[1], [1]]),
        ([[LARGE]], [[LARGE]]),
    ],
)
def test_what_is_not_finite_is_refused(left: list, right: list) -> None:
    """Also where it does not raise a flag, and whoever called has errors raised or not."""
    for raised in ("raise", "ignore"):
        with np.errstate(all=raised), pytest.raises(CheckError, match="out of range"):
            times(np.array(left, np.float32), np.array(right, np.float32))


class Flagging:
    """A matrix of ones in a library that sets flags: here by a division beside the product."""

    def __matmul__(self, other: np.ndarray) -> np.ndarray:
        np.divide(np.zeros(1), np.zeros(1))
        return np.ones((2, 5), np.float32) @ other


def test_a_flag_without_a_reason_refuses_nothing() -> None:
    left: Any = Flagging()
    with np.errstate(all="raise"):
        assert times(left, np.ones(5, np.float32)).tolist() == [5, 5]
        with pytest.raises(FloatingPointError):
            Flagging.__matmul__(left, np.ones(5, np.float32))
