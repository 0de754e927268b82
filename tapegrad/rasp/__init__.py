"""RASP: the language in which transformers are programmed, as users of Tracr write it."""

from tapegrad.rasp.closing import program
from tapegrad.rasp.functions import Value
from tapegrad.rasp.language import (
    DEFAULT_ANNOTATORS,
    Aggregate,
    Comparison,
    ConstantSelector,
    ConstantSOp,
    Encoding,
    Full,
    IndicesType,
    LengthType,
    LinearSequenceMap,
    Map,
    Predicate,
    RASPExpr,
    Select,
    Selector,
    SelectorAnd,
    SelectorNot,
    SelectorOr,
    SelectorWidth,
    SequenceMap,
    SOp,
    TokensType,
    annotate,
    categorical,
    evaluate,
    get_encoding,
    indices,
    is_categorical,
    is_numerical,
    length,
    numerical,
    selector_and,
    selector_not,
    selector_or,
    sop_not,
    tokens,
)
from tapegrad.rasp.program import RaspProgram
from tapegrad.rasp.tracr import from_tracr

__all__ = [
    "DEFAULT_ANNOTATORS", "Aggregate", "Comparison", "ConstantSOp", "ConstantSelector", "Encoding", "Full",
    "IndicesType", "LengthType", "LinearSequenceMap", "Map", "Predicate", "RASPExpr", "RaspProgram", "SOp",
    "Select", "Selector", "SelectorAnd", "SelectorNot", "SelectorOr", "SelectorWidth", "SequenceMap",
    "TokensType", "Value", "annotate", "categorical", "evaluate", "from_tracr", "get_encoding", "indices",
    "is_categorical", "is_numerical", "length", "numerical", "program", "selector_and", "selector_not",
    "selector_or", "sop_not", "tokens",
]  # fmt: skip
