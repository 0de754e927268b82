"""From expressions of Python to the nodes of a program: functions become tables of all that they can be
asked.

Expressions that are the same become one node. Where means over one selector are added, subtracted or
multiplied by constants, it is the mean of the sums that is taken: it is the same number, and there are far
fewer such means than there are pairs of means.
"""

from collections.abc import Iterable
from typing import Any

from tapegrad.errors import Refused, SourceError
from tapegrad.rasp import language as rasp
from tapegrad.rasp.functions import LINEAR, Operation, Value, is_number, plain
from tapegrad.rasp.nodes import (
    MOST_WORK,
    Aggregate,
    Apply,
    Combine,
    Full,
    Indices,
    Node,
    Select,
    Tokens,
    Width,
    cases_of,
    few,
    needed,
    predicate_of,
    renumbered,
    table_of,
    values_of,
)
from tapegrad.rasp.program import RaspProgram, vocabulary_of


def program(
    expression: rasp.SOp,
    vocabulary: Iterable[Value],
    length: int,
    causal: bool = False,
    name: str | None = None,
) -> RaspProgram:
    """A sequence of RASP as a program for this vocabulary and greatest length."""
    if not isinstance(expression, rasp.SOp):
        raise SourceError("a program is a sequence", advice="Aggregate the selector, or take its width.")
    closing = Closing(vocabulary_of(vocabulary), length, causal)
    output = closing.node(expression)
    return closing.program(output, name or expression.name)


class Closing:
    """Nodes so far, with their values."""

    def __init__(self, vocabulary: tuple[Value, ...], length: int, causal: bool) -> None:
        self.vocabulary, self.length, self.causal = vocabulary, length, causal
        RaspProgram((Tokens(),), 0, vocabulary, length)  # refuses what is out of range before anything else
        self.nodes: list[Node] = []
        self.values: list[tuple[Value, ...]] = []
        self.names: dict[int, str] = {}
        self.work = 0
        self._numbers: dict[Node, int] = {}
        self._done: dict[int, tuple[rasp.RASPExpr, int]] = {}

    def program(self, output: int, name: str) -> RaspProgram:
        """What the output depends on."""
        nodes, places = renumbered(self.nodes, needed(self.nodes, output))
        names = {places[own]: title for own, title in self.names.items() if own in places}
        made = RaspProgram(
            tuple(nodes), places[output], self.vocabulary, self.length, self.causal, names, name
        )
        made.__dict__["values"] = tuple(self.values[own] for own in places)  # the cached property
        return made

    def add(self, node: Node, name: str | None = None) -> int:
        """The number of a node, which is new or known."""
        if node not in self._numbers:
            number = len(self.nodes)
            title = name or f"{type(node).__name__.lower()} {number}"
            self.values.append(values_of(node, self.values, self.vocabulary, self.length, title))
            self.work += cases_of(node, self.values)
            few(self.work, MOST_WORK, title, "cases, with all functions before it")
            self.nodes.append(node)
            self._numbers[node] = number
        number = self._numbers[node]
        if name is not None:
            self.names.setdefault(number, name)
        return number

    def apply(self, function: Any, arguments: tuple[int, ...], name: str | None = None) -> int:
        """A function of sequences, with means drawn together and constants worked out."""
        constants = [node.value for node in (self.nodes[own] for own in arguments) if isinstance(node, Full)]
        if len(constants) == len(arguments):
            return self.add(Full(Apply(function, arguments).at(*constants)), name)
        if isinstance(function, str) and (merged := self._merged(function, arguments)) is not None:
            return self.add(merged, name)
        return self.add(Apply(function, arguments), name)

    def _merged(self, sign: str, arguments: tuple[int, ...]) -> Aggregate | None:
        own = [self.nodes[argument] for argument in arguments]
        means = [node for node in own if isinstance(node, Aggregate) and node.mean]
        if any(not is_number(node.default) for node in means) or len(own) != 2:
            return None
        if len(means) == 2 and sign in LINEAR and means[0].selector == means[1].selector:
            inner = self.apply(sign, (means[0].sequence, means[1].sequence))
            default = Operation(sign)(means[0].default, means[1].default)
        elif len(means) == 1 and sign == "*" and any(isinstance(node, Full) for node in own):
            factor = next(node for node in own if isinstance(node, Full)).value
            if not is_number(factor):
                return None
            inner = self.apply("*", (means[0].sequence, self.add(Full(factor))))
            default = means[0].default * factor
        else:
            return None
        return Aggregate(means[0].selector, inner, plain(default), True)

    def node(self, expression: rasp.RASPExpr) -> int:
        """The node of an expression, after those of all that it depends on."""
        waiting = [expression]
        while waiting:
            own = waiting[-1]
            missing = [child for child in own.children if id(child) not in self._done]
            if not missing:
                waiting.pop()
                if id(own) not in self._done:
                    self._done[id(own)] = own, self._closed(own)
            waiting += missing
        return self._done[id(expression)][1]

    def _closed(self, own: rasp.RASPExpr) -> int:
        inner = tuple(self._done[id(child)][1] for child in own.children)
        given = own.name if own.name != own.default_name else None
        title = given or own.name
        if isinstance(own, rasp.TokensType):
            return self.add(Tokens())
        if isinstance(own, rasp.IndicesType):
            return self.add(Indices())
        if isinstance(own, rasp.LengthType):
            return self.length_node(given)
        if isinstance(own, rasp.Full):
            return self.add(Full(plain(own.fill)), given)
        if isinstance(own, rasp.LinearSequenceMap):
            parts = [
                self.apply("*", (number, self.add(Full(plain(factor)))))
                for number, factor in zip(inner, (own.fst_fac, own.snd_fac), strict=True)
            ]
            return self.apply("+", tuple(parts), given)
        if isinstance(own, rasp.Map | rasp.SequenceMap):
            return self._function(own, inner, given)
        if isinstance(own, rasp.Select):
            predicate = own.predicate
            if isinstance(predicate, rasp.Comparison):
                return self.add(Select(inner[0], inner[1], predicate.sign), given)
            keys, queries = (self.values[number] for number in inner)
            found = predicate_of(lambda key, query: rasp.selects(predicate, key, query), keys, queries, title)
            return self.add(Select(inner[0], inner[1], found), given)
        if isinstance(own, rasp.SelectorAnd | rasp.SelectorOr | rasp.SelectorNot):
            return self.add(Combine(_SIGNS[type(own)], inner), given)
        if isinstance(own, rasp.SelectorWidth):
            return self.add(Width(inner[0]), given)
        if isinstance(own, rasp.Aggregate):
            mean = any(rasp.is_numerical(one) for one in (own, own.sop))
            return self.add(Aggregate(inner[0], inner[1], plain(own.default), mean), given)
        raise Refused(
            f"{title!r} is a {type(own).__name__}, which has one length only",
            advice="Use sequences that depend on tokens and indices.",
        )

    def _function(self, own: Any, inner: tuple[int, ...], name: str | None) -> int:
        function = own.f
        if isinstance(function, Operation):
            first = () if function.left is ... else (self.add(Full(plain(function.left))),)
            last = () if function.right is ... else (self.add(Full(plain(function.right))),)
            return self.apply(function.sign, (*first, *inner, *last), name)
        table = table_of(function, [self.values[number] for number in inner], name or own.name)
        return self.apply(table, inner, name)

    def length_node(self, name: str | None = None) -> int:
        """How many tokens there are, which causal programs cannot know."""
        if self.causal:
            raise Refused(
                "a causal program does not know how many tokens there are",
                advice="Count those so far by the width of a selector that always holds.",
            )
        tokens = self.add(Tokens())
        return self.add(Width(self.add(Select(tokens, tokens, "true"))), name)


_SIGNS: dict[type, str] = {rasp.SelectorAnd: "and", rasp.SelectorOr: "or", rasp.SelectorNot: "not"}
