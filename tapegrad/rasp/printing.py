"""RASP programs printed, in the text form that is read."""

import re
from fractions import Fraction

from tapegrad.rasp.functions import OPERATIONS, Value, shown
from tapegrad.rasp.nodes import (
    Apply,
    Combine,
    Full,
    Indices,
    Pairs,
    Select,
    Table,
    Tokens,
    Width,
)
from tapegrad.rasp.program import RaspProgram

RESERVED = {
    "tokens", "indices", "length", "map", "width", "select", "aggregate", "mean", "and", "or", "not", "none",
    "true", "false",
}  # fmt: skip
"""Words that are no names."""


def written(program: RaspProgram) -> str:
    """The text of a program: a line for each expression."""
    titles: dict[int, str] = {}
    lines = [f"rasp {program.name}", "vocabulary " + " ".join(_word(token) for token in program.vocabulary)]
    lines += [f"length {program.length}", *(["causal"] if program.causal else [])]
    for number, node in enumerate(program.nodes):
        if isinstance(node, Tokens | Indices | Full) or number == program.output:
            continue
        title = _identifier(program.names.get(number) or f"x{number}")
        while title in titles.values() or title in RESERVED or title == "output":
            title += f"_{number}"
        text = _text(program, number, titles)
        titles[number] = title
        lines.append(f"{title} = {text}")
    lines.append(f"output = {_text(program, program.output, titles)}")
    return "\n".join(lines) + "\n"


def _word(token: Value) -> str:
    plain_word = (
        isinstance(token, str) and re.fullmatch(r'[^\s"#=]+', token) and not re.fullmatch(r"-?\d+", token)
    )
    return str(token) if plain_word or type(token) is int else shown(token)


def _identifier(name: str) -> str:
    found = re.sub(r"\W+", "_", name).strip("_") or "x"
    return found if not found[0].isdigit() else f"x{found}"


def _text(program: RaspProgram, number: int, titles: dict[int, str]) -> str:
    node = program.nodes[number]

    def of(own: int) -> str:
        inner = program.nodes[own]
        if isinstance(inner, Tokens | Indices):
            return type(inner).__name__.lower()
        if isinstance(inner, Full):
            return f"({shown(inner.value)})" if isinstance(inner.value, Fraction) else shown(inner.value)
        return titles[own]

    if isinstance(node, Tokens | Indices | Full):
        return of(number)
    if isinstance(node, Apply):
        if isinstance(node.function, Table):
            entries = ", ".join(
                f"{shown(values if len(values) == 2 else values[0])}: {shown(gives)}"
                for values, gives in node.function.entries
            )
            return f"map({', '.join(map(of, node.arguments))}, {{{entries}}})"
        assert node.function in OPERATIONS
        if node.function == "not":
            return f"not {of(node.arguments[0])}"
        return f" {node.function} ".join(map(of, node.arguments))
    if isinstance(node, Select):
        predicate = node.predicate
        if isinstance(predicate, Pairs):
            predicate = "{" + ", ".join(sorted(shown(pair) for pair in predicate.listed)) + "}"
        return f"select({of(node.keys)}, {of(node.queries)}, {predicate})"
    if isinstance(node, Combine):
        if node.sign == "not":
            return f"not {titles[node.arguments[0]]}"
        return f" {node.sign} ".join(titles[own] for own in node.arguments)
    if isinstance(node, Width):
        return f"width({titles[node.selector]})"
    name = "mean" if node.mean else "aggregate"
    default = "" if node.default is None else f", {shown(node.default)}"
    return f"{name}({titles[node.selector]}, {of(node.sequence)}{default})"
