"""Rows of a map as people write them."""

from collections.abc import Iterable

MOST_TERMS = 8
"""Terms of a formula that are written out."""


def formula(terms: Iterable[tuple[str, float]], bias: float) -> str:
    """`x[3] + 2 x[5] - 1` for the names and weights of a row's inputs; long sums are cut short."""
    terms = list(terms)
    parts = [_term(weight, name) for name, weight in terms]
    if bias or not terms:
        parts.append(f"{'-' if bias < 0 else '+'} {abs(bias):.9g}")
    if len(parts) > MOST_TERMS:
        parts = [*parts[: MOST_TERMS - 1], f"+ ... ({len(parts)} terms)"]
    text = " ".join(parts)
    return text.removeprefix("+ ") if text.startswith("+") else text.replace("- ", "-", 1)


def _term(weight: float, name: str) -> str:
    size = "" if abs(weight) == 1 else f"{abs(weight):g} "
    return f"{'-' if weight < 0 else '+'} {size}{name}"
