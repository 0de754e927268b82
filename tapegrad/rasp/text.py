"""RASP as text, for files: a line for each name.

    rasp reverse
    vocabulary a b c d
    length 16
    opposite = length - indices - 1
    output = aggregate(select(indices, opposite, ==), tokens)

Sequences are `tokens`, `indices`, `length`, constants, names given before, and what these make with `+ - * /
// %`, comparisons, `and`, `or`, `not`, `map(x, {1: "a"})`, `map(x, y, {(1, 2): "a"})`, `width(s)`, and
`aggregate(s, x, default)`, which moves values, or `mean(s, x, default)`. Selectors are `select(keys, queries,
==)`, or with `true`, `false` or a set of pairs `{(1, 2), (1, 3)}`, and what these make with `and`, `or`,
`not`. A line `causal` says that no position selects a later one. After `#` comes a comment.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tapegrad.errors import FormatError, TapegradError
from tapegrad.rasp.closing import Closing
from tapegrad.rasp.functions import COMPARISONS, OPERATIONS, Value, applied, plain
from tapegrad.rasp.nodes import (
    Aggregate,
    Combine,
    Full,
    Indices,
    Pairs,
    Select,
    Sequence_,
    Table,
    Tokens,
    Width,
)
from tapegrad.rasp.printing import RESERVED, written
from tapegrad.rasp.program import LONGEST, RaspProgram, vocabulary_of
from tapegrad.source import Format, opening, quoted

MOST_BYTES = 16 << 20
DEEPEST = 100
"""Brackets and signs within each other."""

_LEXEME = re.compile(
    r'\s*(?:(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)|(?P<name>[^\W\d]\w*)|(?P<text>"(?:[^"\\]|\\.)*")'
    r"|(?P<sign>//|==|!=|<=|>=|[-+*/%<>(),{}:=]))"
)
_WORDS = {"none": None, "true": True, "false": False}
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("or",), ("and",), (), ("==", "!=", "<", "<=", ">", ">="), ("+", "-"), ("*", "/", "//", "%"),
)  # fmt: skip
"""From the loosest to the tightest; the third is that of `not`."""


def read(data: bytes) -> RaspProgram:
    """A program, or a FormatError with the line."""
    if len(data) > MOST_BYTES:
        raise FormatError(f"a program of {len(data):,} bytes is too large")
    try:
        lines = data.decode("utf-8").removeprefix("\ufeff").splitlines()
    except UnicodeDecodeError as error:
        raise FormatError("the program is not text in UTF-8") from error
    return _File(lines).program()


class _File:
    """Lines of a program, read one after the other."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = [(number, _bare(line)) for number, line in enumerate(lines, 1)]
        self.lines = [(number, line) for number, line in self.lines if line]

    def program(self) -> RaspProgram:
        """The whole file."""
        name, vocabulary, length, causal = "rasp", None, None, False
        while self.lines:
            number, line = self.lines[0]
            word, _, rest = line.partition(" ")
            if "=" in line.split('"')[0]:
                break
            if word == "rasp":
                name = rest.strip() or name
            elif word == "vocabulary":
                vocabulary = _Line(rest, number).values()
            elif word == "length":
                length = _whole(rest, number)
            elif line == "causal":
                causal = True
            else:
                raise FormatError(
                    f"{quoted(line)} is neither a setting nor a name with an expression",
                    where=f"line {number}",
                    advice="Settings are vocabulary, length and causal; then come lines `name = expression`.",
                )  # fmt: skip
            self.lines.pop(0)
        if vocabulary is None or length is None:
            missing = "vocabulary" if vocabulary is None else "length"
            raise FormatError(
                f"the program has no {missing}", advice=f"Add a line that begins with `{missing}`."
            )
        closing = Closing(vocabulary_of(vocabulary), length, causal)
        known: dict[str, int] = {}
        for number, line in self.lines:
            self._assign(closing, known, number, line)
        if "output" not in known:
            raise FormatError("the program has no output", advice="Add a line `output = expression`.")
        return closing.program(known["output"], name)

    def _assign(self, closing: Closing, known: dict[str, int], number: int, line: str) -> None:
        own = _Line(line, number, closing, known)
        title = own.take("name")
        if title in RESERVED or title in known:
            raise own.error(f"the name {title!r} is taken")
        own.expect("=")
        try:
            found = own.sequence_or_selector(0, 0)
            own.expect("")
        except TapegradError as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(error.what, where=f"line {number}", advice=error.advice) from error
        known[title] = own.node(found)
        if title != "output" and known[title] not in closing.names:
            closing.names[known[title]] = title


def _bare(line: str) -> str:
    """A line without comment."""
    found = re.match(r'(?:[^"#]|"(?:[^"\\]|\\.)*"?)*', line)
    return (found[0] if found else line).strip()


def _whole(text: str, line: int) -> int:
    if not re.fullmatch(r"\s*\d{1,9}\s*", text):
        raise FormatError(
            f"{quoted(text)} is not a length",
            where=f"line {line}",
            advice=f"Write a number up to {LONGEST:,}.",
        )
    return int(text)


_Found = int | tuple[str, Value]
"""A node, or a constant, which is none yet."""


class _Line:
    """The lexemes of a line, and what they mean."""

    def __init__(
        self, text: str, line: int, closing: Closing | None = None, known: dict[str, int] | None = None
    ) -> None:
        self.text, self.line, self.at, self.known = text, line, 0, known or {}
        self._closing = closing

    @property
    def closing(self) -> Closing:
        assert self._closing is not None
        return self._closing

    def error(self, what: str, advice: str = "") -> FormatError:
        return FormatError(what, where=f"line {self.line}, column {self.at + 1}", advice=advice)

    def peek(self) -> tuple[str, str]:
        """The kind of the next lexeme, and the lexeme."""
        found = _LEXEME.match(self.text, self.at)
        if found is None:
            rest = self.text[self.at :].strip()
            if rest:
                raise self.error(f"{quoted(rest)} cannot be read")
            return "end", ""
        kind = found.lastgroup or ""
        return kind, found[kind]

    def next(self) -> tuple[str, str]:
        """The same, and on."""
        kind, text = self.peek()
        found = _LEXEME.match(self.text, self.at)
        self.at = found.end() if found else len(self.text)
        return kind, text

    def take(self, wanted: str) -> str:
        kind, text = self.peek()
        if kind != wanted:
            found = quoted(text) if text else "the end of the line"
            raise self.error(f"there is {found} where a {wanted} is wanted")
        return self.next()[1]

    def expect(self, sign: str) -> None:
        if self.peek()[1] != sign or (not sign and self.peek()[0] != "end"):
            found = self.peek()[1] or "the end of the line"
            raise self.error(
                f"there is {quoted(found)} where {quoted(sign) if sign else 'the end'} is wanted"
            )
        self.next()

    # Values

    def values(self) -> list[Value]:
        """Values up to the end of the line, or bare words, which are strings."""
        return [self._bare_value(word) for word in re.findall(r'"(?:[^"\\]|\\.)*"|\S+', self.text)]

    def _bare_value(self, word: str) -> Value:
        if word.startswith('"') and word.endswith('"') and len(word) > 1:
            return _unquoted(word)
        if re.fullmatch(r"-?\d+", word):
            return int(word)
        return word

    def value(self, depth: int = 0) -> Value:
        """A literal: a number, a fraction, a string, a word or a tuple."""
        if depth > DEEPEST:
            raise self.error("a value is nested too deeply")
        kind, text = self.next()
        if text == "-":
            return plain(-self.value(depth + 1))
        if kind == "number":
            own: Value = float(text) if "." in text or "e" in text else int(text)
            if self.peek()[1] == "/":
                self.next()
                own = Fraction(own, int(self.take("number")))
            return plain(own)
        if kind == "text":
            return _unquoted(text)
        if text in _WORDS:
            return _WORDS[text]
        if text == "(":
            return tuple(self._listed(")", lambda: self.value(depth + 1)))
        raise self.error(f"{quoted(text)} is no value")

    def _listed(self, end: str, one: Callable[[], Any]) -> list[Any]:
        found = []
        while self.peek()[1] != end:
            found.append(one())
            if self.peek()[1] == ",":
                self.next()
            elif self.peek()[1] != end:
                raise self.error(f"there is {quoted(self.peek()[1])} where {quoted(end)} is wanted")
        self.next()
        return found

    # Expressions

    def node(self, found: _Found) -> int:
        """A constant as a node."""
        return found if isinstance(found, int) else self.closing.add(Full(found[1]))

    def sequence_or_selector(self, level: int, depth: int) -> _Found:
        """An expression of this level or a tighter one."""
        if depth > DEEPEST:
            raise self.error("an expression is nested too deeply")
        if level == len(_LEVELS):
            return self._atom(depth)
        if level == 2:
            if self.peek()[1] == "not":
                self.next()
                return self._joined("not", self.sequence_or_selector(level, depth + 1))
            return self.sequence_or_selector(level + 1, depth)
        found = self.sequence_or_selector(level + 1, depth)
        while self.peek()[1] in _LEVELS[level]:
            sign = self.next()[1]
            found = self._joined(sign, found, self.sequence_or_selector(level + 1, depth))
        return found

    def _joined(self, sign: str, *parts: _Found) -> _Found:
        if all(isinstance(part, tuple) for part in parts):
            values = (part[1] for part in parts if isinstance(part, tuple))
            return "constant", applied(OPERATIONS[sign], *values)
        nodes = tuple(self.node(part) for part in parts)
        selectors = [not isinstance(self.closing.nodes[node], Sequence_) for node in nodes]
        if all(selectors):
            if sign not in ("and", "or", "not"):
                raise self.error(f"selectors cannot be joined by {sign!r}")
            return self.closing.add(Combine(sign, nodes))
        if any(selectors):
            raise self.error(f"{sign!r} joins a selector and a sequence")
        return self.closing.apply(sign, nodes)

    def _atom(self, depth: int) -> _Found:
        kind, text = self.peek()
        if text == "(":
            self.next()
            found = self.sequence_or_selector(0, depth + 1)
            if self.peek()[1] == "," and isinstance(found, tuple):
                self.next()
                return "constant", (found[1], *self._listed(")", lambda: self.value(depth + 1)))
            self.expect(")")
            return found
        if text == "-" or kind in ("number", "text") or text in _WORDS:
            return "constant", self._constant()
        name = self.take("name")
        if self.peek()[1] == "(":
            self.next()
            return self._call(name, depth + 1)
        if name == "tokens":
            return self.closing.add(Tokens())
        if name == "indices":
            return self.closing.add(Indices())
        if name == "length":
            return self.closing.length_node()
        if name not in self.known:
            raise self.error(f"there is no {name!r} before this line")
        return self.known[name]

    def _constant(self) -> Value:
        """A literal within an expression, in which `/` divides."""
        kind, text = self.next()
        if text == "-":
            return plain(-self._number())
        if kind == "number":
            self.at -= len(text)
            return self._number()
        return _unquoted(text) if kind == "text" else _WORDS[text]

    def _number(self) -> Value:
        text = self.take("number")
        return plain(float(text) if "." in text or "e" in text else int(text))

    def _call(self, name: str, depth: int) -> int:
        def argument(selector: bool = False) -> int:
            node = self.node(self.sequence_or_selector(0, depth))
            if isinstance(self.closing.nodes[node], Sequence_) == selector:
                wanted = "selector" if selector else "sequence"
                raise self.error(f"{name} wants a {wanted} here")
            return node

        if name == "select":
            keys = argument()
            self.expect(",")
            queries = argument()
            self.expect(",")
            found = self.closing.add(Select(keys, queries, self._predicate()))
        elif name == "width":
            found = self.closing.add(Width(argument(True)))
        elif name in ("aggregate", "mean"):
            selector = argument(True)
            self.expect(",")
            sequence, default = argument(), None
            if self.peek()[1] == ",":
                self.next()
                default = self.value()
            found = self.closing.add(Aggregate(selector, sequence, default, name == "mean"))
        elif name == "map":
            nodes = [argument()]
            self.expect(",")
            if self.peek()[1] != "{":
                nodes.append(argument())
                self.expect(",")
            found = self.closing.apply(self._table(len(nodes)), tuple(nodes))
        else:
            raise self.error(
                f"there is no function {name!r}", "Functions: select, width, aggregate, mean, map."
            )
        self.expect(")")
        return found

    def _predicate(self) -> str | Pairs:
        if self.peek()[1] == "{":
            self.next()
            pairs = self._listed("}", self.value)
            if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
                raise self.error("a predicate is a set of pairs of key and query")
            if any(None in pair for pair in pairs):
                raise self.error(
                    "no predicate is asked about none",
                    "Give the aggregate before it a default that is a value.",
                )
            return Pairs(frozenset(pairs))
        sign = self.next()[1]
        if sign not in COMPARISONS:
            raise self.error(f"{quoted(sign)} is no comparison", f"Comparisons: {' '.join(COMPARISONS)}.")
        return sign

    def _table(self, arity: int) -> Table:
        self.expect("{")

        def entry() -> tuple[tuple[Value, ...], Value]:
            values = self.value()
            self.expect(":")
            if arity == 2 and not (isinstance(values, tuple) and len(values) == 2):
                raise self.error("a function of two sequences is given by pairs of values")
            return (values if arity == 2 else (values,)), self.value()

        return Table(tuple(self._listed("}", entry)))


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])


FORMAT = Format(
    "rasp",
    "a RASP program: sequences, selectors and aggregates, a line for each name",
    "rasp length\nvocabulary a b\nlength 5\noutput = width(select(tokens, tokens, true))\n",
    lambda data: bool(re.match(r"\s*(#.*\n\s*)*rasp( |\n|\r)", opening(data))),
    read,
    written,
)
