"""Advice is followed as it stands, and then the function does what Python does: numbers are its own."""

import importlib.util
import re
from itertools import count, product
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tapegrad.circuits import Traced, trace
from tapegrad.errors import SourceError

SIGNATURE = "a: tg.UInt(8), b: tg.UInt(8), p: tg.Bit, q: tg.Bit"
ROUNDS = 30
NUMBER = count()


def module(text: str, folder: Path) -> ModuleType:
    """A file of this text, imported."""
    path = folder / f"advised{next(NUMBER)}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def advised(body: list[str], folder: Path) -> tuple[list[str], Traced]:
    """The lines of a function after all advice was followed, and its circuit."""
    for _ in range(ROUNDS):
        lines = "".join(f"    {line}\n" for line in body)
        own = module(f"import tapegrad as tg\ndef f({SIGNATURE}):\n{lines}", folder)
        try:
            return body, trace(own.f)
        except SourceError as error:
            written = re.fullmatch(r"Write `(.*)` instead\.", error.advice)
            if not written:
                raise
            at = int(re.search(r"line (\d+)", error.where)[1]) - 3  # type: ignore[index]
            if body[at].startswith("if "):
                new = written[1]
                whole = new.startswith(("return ", "c = "))  # for the branch and what it leads to
                after = at + 2 if whole or not body[at].endswith(":") else at + 1
                body = (
                    [*body[:at], new, *body[after:]] if whole else [*body[:at], f"if {new}:", *body[at + 1 :]]
                )
            else:
                body = [*body[:at], written[1], *body[at + 1 :]]
    raise AssertionError(body)


BIT_OF, BIT = r"\b([ab])\[(\d)\]", r"(\1 >> \2 & 1)"
"""Bits of words; Python's integers have none of their own."""
VALUES = [
    (a, b, p, q) for a, b in product((0, 1, 2, 4, 5, 8, 255), (0, 3, 7)) for p in (0, 1) for q in (0, 1)
]


def agrees(body: list[str], folder: Path) -> list[str]:
    """The lines as advised, which do what the first ones do."""
    new, traced = advised(body, folder)
    lines = "".join(f"    {re.sub(BIT_OF, BIT, line)}\n" for line in body)
    plain = module(f"def f(a, b, p, q):\n{lines}", folder).f
    for a, b, p, q in VALUES:
        assert traced(a, b, p, q) == plain(a, b, bool(p), bool(q)), (new, a, b, p, q)
    return new


@pytest.mark.parametrize(
    ("line", "last"),
    [
        ("return a or 7", "return tg.where(a != 0, a, 7)"),
        ("return a and b", "return tg.where(a != 0, b, a)"),
        ("return not a", "return a == 0"),
        ("return not p", "return ~p"),
        ("return p and q or a < b", "return p & q | (a < b)"),
        ("return a < b or a", "return tg.where(a < b, a < b, a)"),
        ("return a[0] and b[1]", "return a[0] & b[1]"),
        ("return any([a, b])", "return tg.any_of((x != 0 for x in [a, b]))"),
        ("return all(x > 3 for x in (a, b))", "return tg.all_of((x > 3 for x in (a, b)))"),
        ("return a if a and b else b", "return tg.where((a != 0) & (b != 0), a, b)"),
        ("return a not in (1, 2)", "return ~tg.any_of(tg.array((1, 2)) == a)"),
        ("return max(*[a, b])", "return tg.largest([*[a, b]])"),
        ("return (a & 3 or b and 7) ^ 1", None),
        ("return not (a and p)", None),
        ("return 0 < a < b or not b", None),
    ],
)
def test_advice_keeps_what_python_does(line: str, last: str | None, tmp_path: Path) -> None:
    (found,) = agrees([line], tmp_path)
    assert last in (None, found)


@pytest.mark.parametrize(
    "body",
    [
        ["if a and b:", "    return a", "return b"],
        ["if not a or p:", "    return b", "return a"],
        ["c = b", "if a or p:", "    c = a", "return c"],
    ],
)
def test_advice_on_branches_keeps_what_python_does(body: list[str], tmp_path: Path) -> None:
    agrees(body, tmp_path)


def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join)
    return st.one_of(pairs, inner.map("not ({})".format), st.tuples(inner, inner, inner).map(
        lambda own: "({} if {} else {})".format(*own)
    )).map("({})".format)  # fmt: skip


WORDS = st.recursive(st.sampled_from(["a", "b", "p", "q", "a < b", "a ^ b", "p ^ q"]), joined, max_leaves=5)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WORDS)
def test_any_advice_keeps_what_python_does(tmp_path: Path, expression: str) -> None:
    agrees([f"return {expression}"], tmp_path)


def test_what_cannot_be_told_is_not_told(tmp_path: Path) -> None:
    """`sort` sorts upwards."""
    with pytest.raises(SourceError, match=r"for numbers `tg\.where"):
        advised(["return sorted([a, b], reverse=True)"], tmp_path)
