"""What assembler texts are made of: places in them, expressions of numbers and symbols, and quotations."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from tapegrad.errors import FormatError

_TOKEN = re.compile(
    r"\s*(0[xX][0-9a-fA-F]+|0[bB][01]+(?!\w)|\d+[bf](?!\w)|\d+|'(?:\\.|[^'\\])'|[A-Za-z_.$][\w.$]*|<<|>>|[-+*/%&|^~()])"
)
_LEVELS: tuple[tuple[str, ...], ...] = (("|",), ("^",), ("&",), ("<<", ">>"), ("+", "-"), ("*", "/", "%"))
_ESCAPES = {
    "n": 10,
    "t": 9,
    "r": 13,
    "0": 0,
    "\\": 92,
    "'": 39,
    '"': 34,
    "a": 7,
    "b": 8,
    "f": 12,
    "v": 11,
    "e": 27,
}
DEEPEST = 50
LARGEST = 1 << 64


class Undefined(Exception):
    """A symbol has no value."""


@dataclass(frozen=True)
class Place:
    """Where in a text something stands."""

    line: int
    column: int

    def further(self, columns: int) -> "Place":
        """So many columns to the right."""
        return Place(self.line, self.column + columns)

    def error(self, what: str, advice: str = "") -> FormatError:
        """What is wrong there."""
        return FormatError(what, where=f"line {self.line}, column {self.column}", advice=advice)


def did_you_mean(word: str, known: Sequence[str], otherwise: str = "") -> str:
    """An advice with the known words that are closest."""
    close = get_close_matches(word, known, 3, 0.6)
    return f"Did you mean {' or '.join(close)}?" if close else otherwise


# Statements and operands


_STATEMENT = re.compile(r"""(?:[^;"'#/\n]|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'?|/(?![/*]))+""")


def statements(text: str) -> Iterator[tuple[Place, str]]:
    """Statements with their places. `#`, `//` and `/* */` begin comments, and `;` separates statements."""
    at, line, line_begins = 0, 1, 0
    while at < len(text):
        place = Place(line, at - line_begins + 1)
        if found := _STATEMENT.match(text, at):
            if found[0].strip():
                yield place.further(len(found[0]) - len(found[0].lstrip())), found[0].strip()
            at = found.end()
        elif text[at] == "\n":
            at += 1
            line, line_begins = line + 1, at
        elif text[at] == ";":
            at += 1
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            if end < 0:
                raise place.error("a comment that does not end")
            if lines := text.count("\n", at, end):
                line, line_begins = line + lines, text.rindex("\n", at, end) + 1
            at = end + 2
        elif text[at] in "\"'":
            raise place.error("a quotation that does not end")
        else:
            end = text.find("\n", at)
            at = end if end >= 0 else len(text)


def separated(text: str) -> list[str]:
    """Operands, separated by commas outside quotations and parentheses."""
    parts, depth, quote, begin = [], 0, "", 0
    escaped = False
    for at, letter in enumerate(text):
        if escaped:
            escaped = False
        elif quote:
            escaped = letter == "\\"
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "()":
            depth += 1 if letter == "(" else -1
        elif letter == "," and not depth:
            parts.append(text[begin:at].strip())
            begin = at + 1
    last = text[begin:].strip()
    return [*parts, last] if last or parts else []


# Expressions


def evaluated(place: Place, text: str, symbol: Callable[[str], int]) -> int:
    """The value of an expression; `symbol` gives those of names, or raises `Undefined`."""
    return _Expression(place, text, symbol).whole()


class _Expression:
    def __init__(self, place: Place, text: str, symbol: Callable[[str], int]) -> None:
        self.place, self.text, self.symbol = place, text.strip(), symbol
        self.tokens: list[str] = []
        self.depth = 0
        at = 0
        while at < len(self.text):
            found = _TOKEN.match(self.text, at)
            if found is None:
                raise self.wrong()
            self.tokens.append(found[1])
            at = found.end()
        self.at = 0

    def wrong(self) -> FormatError:
        shown = self.text if len(self.text) <= 40 else self.text[:37] + "..."
        return self.place.error(f"{shown!r} is no number, label or expression")

    def whole(self) -> int:
        value = self.level(0)
        if self.at < len(self.tokens):
            raise self.wrong()
        return value

    def level(self, number: int) -> int:
        if number == len(_LEVELS):
            return self.operand()
        value = self.level(number + 1)
        while self.at < len(self.tokens) and self.tokens[self.at] in _LEVELS[number]:
            operator = self.tokens[self.at]
            self.at += 1
            value = self.combined(operator, value, self.level(number + 1))
            if abs(value) >= LARGEST:
                raise self.place.error(f"{self.text[:40]!r} is too large")
        return value

    def combined(self, operator: str, a: int, b: int) -> int:
        if operator in ("/", "%"):
            if b == 0:
                raise self.place.error(f"{self.text[:40]!r} divides by zero")
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return quotient if operator == "/" else a - b * quotient
        if operator in ("<<", ">>"):
            if not 0 <= b < 64:
                raise self.place.error(f"{self.text[:40]!r} shifts by {b}")
            return a << b if operator == "<<" else a >> b
        return {"|": a | b, "^": a ^ b, "&": a & b, "+": a + b, "-": a - b, "*": a * b}[operator]

    def operand(self) -> int:
        if self.at == len(self.tokens) or self.depth > DEEPEST:
            raise self.wrong()
        token = self.tokens[self.at]
        self.at += 1
        self.depth += 1
        try:
            if token in "+-~":
                value = self.operand()
                return {"+": value, "-": -value, "~": ~value}[token]
            if token == "(":
                value = self.level(0)
                if self.tokens[self.at : self.at + 1] != [")"]:
                    raise self.wrong()
                self.at += 1
                return value
        finally:
            self.depth -= 1
        if token[0] == "'":
            return unescaped(self.place, f'"{token[1:-1]}"')[0]
        if token[0].isdigit() and token[-1] in "bf" and not token.lower().startswith(("0x", "0b")):
            return self.symbol(token)
        if token[0].isdigit():
            digits = token.lower()
            octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
            try:
                return int(digits, 8 if octal else 0)
            except ValueError:
                raise self.wrong() from None
        if token in "*/%&|^)" or token in ("<<", ">>"):
            raise self.wrong()
        return self.symbol(token)


def unescaped(place: Place, text: str) -> bytes:
    """The bytes of a quotation."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        raise place.error(f"{text[:40]!r} is no text in quotation marks")
    data, at, inner = bytearray(), 0, text[1:-1]
    while at < len(inner):
        if inner[at] != "\\":
            data += inner[at].encode()
            at += 1
        elif number := re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3}))").match(inner, at):
            data.append((int(number[1], 16) if number[1] else int(number[2], 8)) & 255)
            at = number.end()
        elif inner[at + 1 : at + 2] in _ESCAPES:
            data.append(_ESCAPES[inner[at + 1]])
            at += 2
        else:
            raise place.error(f"unknown escape {inner[at : at + 2]!r} in a text")
    return bytes(data)
