"""What a unit of the filter is for, in words: the reason that was written down when it was built."""

from collections.abc import Iterator, Mapping, Sequence

from tapegrad.errors import InputError

Names = Mapping[str, Sequence[str]]
"""For each layer the reasons of its units."""

_PLACES = {
    "V1": "first ReLU, Lemma 5 part (i)",
    "V2": "questions about one cell, Lemma 5 part (i)",
    "V3": "second ReLU: the clauses of f_msg and f_TM, B.2",
    "V4": "digits of the new value, B.1",
    "V5": "the new value, B.1",
    "units": "ReLU: the clauses of f_msg and f_TM, B.2",
    "channels": "one fact of a cell, B.1",
}
"""What the units of each layer are in the paper."""


def unit_names(names: Names) -> Iterator[str]:
    """Every unit as LAYER[NUMBER]."""
    for layer, own in names.items():
        yield from (f"{layer}[{number}]" for number in range(len(own)))


def explain(names: Names, unit: str) -> str:
    """The reason for a unit, and its place in the paper."""
    layer, _, rest = unit.partition("[")
    number = rest.removesuffix("]")
    if layer not in names or not number.isdigit() or int(number) >= len(names[layer]):
        raise InputError(f"there is no unit {unit!r}", advice=f"Layers are {', '.join(names)}.")
    return f"{names[layer][int(number)]} ({_PLACES[layer]})"
