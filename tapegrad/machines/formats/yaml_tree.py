"""YAML as a plain tree in which every scalar is a string, made from the parser's events.

Nothing is constructed: aliases, anchors and tags are refused, and so are repeated keys, deep nesting and
large trees. Each node knows its position."""

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from tapegrad.errors import FormatError
from tapegrad.machines.formats.loaded import At
from tapegrad.source import quoted

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser in C where PyYAML has it: the same events, ten times as fast."""
_MAX_DEPTH = 8
_MAX_NODES = 1_000_000


@dataclass(frozen=True)
class Place:
    """Where a text stands in the file; not (0, 0) for a text that was quoted in another one."""

    line: int = 0
    column: int = 0

    def at(self, mark: yaml.Mark) -> At:
        return At(self.line + mark.line + 1, self.column + mark.column + 1)


@dataclass(slots=True)
class _Placed:
    at: At

    @property
    def where(self) -> str:
        return str(self.at)


@dataclass(slots=True)
class Scalar(_Placed):
    text: str
    style: str | None
    """None or empty for a plain one, or the mark that opens it: a quotation mark, | or >."""

    @property
    def plain(self) -> bool:
        return not self.style

    @property
    def missing(self) -> bool:
        """Whether nothing was written here, as after the colon in `halt:`."""
        return self.plain and self.text in ("", "~", "null")


@dataclass(slots=True)
class Sequence(_Placed):
    items: list["Node"]


@dataclass(slots=True)
class Mapping(_Placed):
    entries: list[tuple["Node", "Node"]]

    def get(self, key: str) -> "Node | None":
        """The value of a scalar key."""
        for name, value in self.entries:
            if isinstance(name, Scalar) and name.text == key:
                return value
        return None


Node = Scalar | Sequence | Mapping


def parse(text: str, place: Place) -> Node:
    """The one document of this text as a tree."""
    try:
        composer = _Composer(yaml.parse(text, Loader=_LOADER), place)
        return composer.document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise FormatError(
            f"this is not YAML: {error.problem or error.context}",
            where=str(place.at(mark)) if mark else "",
            advice="Check the indentation, and quote symbols such as '*' or ' '. Was the text cut off?",
        ) from None
    except yaml.YAMLError as error:
        position = getattr(error, "position", None)
        raise FormatError(
            "this is not YAML: it holds a character that YAML does not allow",
            where=f"character {position + 1}" if position is not None else "",
            advice="Save the file as plain text.",
        ) from None


class _Composer:
    def __init__(self, events: Iterator[yaml.Event], place: Place) -> None:
        self._events = events
        self._place = place
        self._nodes = 0

    def document(self) -> Node:
        next(self._events)  # the stream starts
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise FormatError("the text holds nothing but comments")
        node = self._node(next(self._events), 0)
        next(self._events)  # the document ends
        if not isinstance(extra := next(self._events), yaml.StreamEndEvent):
            raise FormatError(
                "a second YAML document begins",
                where=str(self._place.at(extra.start_mark)),
                advice="Put one machine in one file, without --- between.",
            )
        return node

    def _node(self, event: yaml.Event, depth: int) -> Node:
        """One node; the depth is bounded, so the recursion is too."""
        where = self._place.at(event.start_mark)
        self._nodes += 1
        if depth > _MAX_DEPTH or self._nodes > _MAX_NODES:
            raise FormatError("the YAML is nested too deeply or too large for a machine", where=str(where))
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise FormatError(
                "YAML anchors and aliases are not read",
                where=str(where),
                advice="Write the value out, or use synonyms; quote a symbol '*' or '&'.",
            )
        if getattr(event, "tag", None) is not None:
            raise FormatError(
                "YAML tags are not read", where=str(where), advice="Remove the tag; quote a symbol '!'."
            )
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(where, event.value, event.style)
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(item := next(self._events), yaml.SequenceEndEvent):
                items.append(self._node(item, depth + 1))
            return Sequence(where, items)
        return self._mapping(where, depth)

    def _mapping(self, where: At, depth: int) -> Mapping:
        entries: list[tuple[Node, Node]] = []
        seen: set[str] = set()
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            if isinstance(key, Scalar):
                if key.text in seen:
                    raise FormatError(
                        f"the key {quoted(key.text)} occurs twice",
                        where=key.where,
                        advice="Remove one of them.",
                    )
                seen.add(key.text)
            entries.append((key, self._node(next(self._events), depth + 1)))
        return Mapping(where, entries)
