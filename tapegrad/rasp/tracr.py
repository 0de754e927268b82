"""Programs that were made with Tracr itself: its objects are known by the names of their classes and
fields."""

from collections.abc import Callable, Mapping
from typing import Any

from tapegrad.errors import SourceError
from tapegrad.rasp import language as rasp

_FIELDS: Mapping[str, tuple[Callable[..., rasp.RASPExpr], tuple[str, ...]]] = {
    "TokensType": (rasp.TokensType, ()),
    "IndicesType": (rasp.IndicesType, ()),
    "LengthType": (rasp.LengthType, ()),
    "Map": (rasp.Map, ("f", "inner")),
    "LinearSequenceMap": (rasp.LinearSequenceMap, ("fst", "snd", "fst_fac", "snd_fac")),
    "SequenceMap": (rasp.SequenceMap, ("f", "fst", "snd")),
    "Full": (rasp.Full, ("fill",)),
    "ConstantSOp": (rasp.ConstantSOp, ("value", "check_length")),
    "Select": (rasp.Select, ("keys", "queries", "predicate")),
    "ConstantSelector": (rasp.ConstantSelector, ("value", "check_length")),
    "SelectorAnd": (rasp.SelectorAnd, ("fst", "snd")),
    "SelectorOr": (rasp.SelectorOr, ("fst", "snd")),
    "SelectorNot": (rasp.SelectorNot, ("inner",)),
    "SelectorWidth": (rasp.SelectorWidth, ("selector",)),
    "Aggregate": (rasp.Aggregate, ("selector", "sop", "default")),
}
"""Every class of the language, with the fields that it is made of."""


def from_tracr(program: Any) -> Any:
    """The same expression here. Tracr need not be importable; nothing of it is imported."""
    done: dict[int, rasp.RASPExpr] = {}
    waiting = [program]
    while waiting:
        own = waiting[-1]
        kind = type(own).__name__
        if kind not in _FIELDS or not hasattr(own, "annotations"):
            raise SourceError(
                f"a {kind} is not an expression of RASP", advice="Give a sequence or a selector."
            )
        missing = [child for child in own.children if id(child) not in done]
        if not missing:
            waiting.pop()
            done[id(own)] = _made(own, kind, done)
        waiting += missing
    return done[id(program)]


def _made(own: Any, kind: str, done: Mapping[int, rasp.RASPExpr]) -> rasp.RASPExpr:
    make, fields = _FIELDS[kind]
    values = [getattr(own, name) for name in fields]
    made = make(*(done.get(id(value), _comparison(value)) for value in values))
    notes = {key: _encoding(value) for key, value in dict(own.annotations).items()}
    return rasp.annotate(made, **notes) if notes else made


def _comparison(value: Any) -> Any:
    if type(value).__name__ == "Comparison":
        return rasp.Comparison(value.value)
    return value


def _encoding(value: Any) -> Any:
    return rasp.Encoding(value.value) if type(value).__name__ == "Encoding" else value
