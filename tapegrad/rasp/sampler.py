"""Random RASP programs: typed, defined for every input, without dead code, and never constant.

A program grows node by node, each of a random kind that fits the types of what is there; those that nothing
has read yet are read first. Values are only moved where one position is selected, or where all selected
positions have the same value, so that no input is refused. What comes out is kept if every sequence and every
selector in it matters: where one is held at any one value, or selects everything or nothing, some input has
another output; and no two are always the same.
"""

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np

from tapegrad.errors import Refused, TapegradError
from tapegrad.rasp.closing import Closing
from tapegrad.rasp.functions import COMPARISONS, Value, is_number
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
    read_by,
)
from tapegrad.rasp.program import RaspProgram, State

ATTEMPTS = 256
MOST_VALUES = 40
"""Of a sequence: what a random function is applied to stays small."""
MOST_AVERAGED = 4
"""Values of a sequence of which means are taken: there are many more means."""
MOST_LISTED = 5
"""Values of a sequence for which a function or a predicate is given by a list."""
HELD = 6
"""Values at which a sequence is held to see whether it matters."""
SHORT, LONGER = 3, 24
"""All inputs of two tokens up to so long are tried, and so many others."""
VOCABULARIES: tuple[tuple[Value, ...], ...] = (
    tuple("ab"), tuple("abc"), tuple("abcd"), tuple("abcde"), (0, 1), (1, 2, 3), (0, 1, 2, 3), (-1, 0, 2),
)  # fmt: skip
KINDS = {"select": 0.22, "combine": 0.1, "width": 0.15, "mean": 0.1, "move": 0.2, "apply": 0.23}


def random_program(seed: int) -> RaspProgram:
    """A small random program, the same for the same seed."""
    random = np.random.default_rng(seed)
    for _ in range(ATTEMPTS):
        try:
            found = _Growing(random).grown(f"random {seed}")
        except TapegradError:  # too many values, or a function that has none
            continue
        if found is not None and _all_matters(found):
            return found
    raise Refused(f"no program was found for the seed {seed}", advice="Try another seed.")


class _Growing:
    """A program that is being made."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        vocabulary = VOCABULARIES[int(random.integers(len(VOCABULARIES)))]
        self.closing = Closing(vocabulary, int(random.integers(4, 11)), self.chance(0.4))
        self.nodes = self.closing.nodes
        self.tokens, self.indices = self.closing.add(Tokens()), self.closing.add(Indices())

    def grown(self, name: str) -> RaspProgram | None:
        """The program of its last sequence, if that is one that attends to other positions."""
        for _ in range(self.random.integers(4, 16)):
            {
                "select": self.select,
                "combine": self.combine,
                "width": self.width,
                "mean": self.mean,
                "move": self.move,
                "apply": self.apply,
            }[str(self.random.choice(list(KINDS), p=list(KINDS.values())))]()
        made = self.closing.program(self.sequences()[-1], name)
        return made if any(isinstance(node, Width | Aggregate) for node in made.nodes) else None

    # What there is, and what is chosen

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def sequences(self) -> list[int]:
        return [n for n, node in enumerate(self.nodes) if isinstance(node, Sequence_)]

    def selectors(self) -> list[int]:
        return [n for n, node in enumerate(self.nodes) if not isinstance(node, Sequence_)]

    def one(self, among: Sequence[int]) -> int:
        """One of these nodes: rather a late one, and rather one that nothing has read."""
        read = {own for node in self.nodes for own in read_by(node)}
        weights = np.array([(1 + place) * (1 if own in read else 4) for place, own in enumerate(among)])
        return among[int(self.random.choice(len(among), p=weights / weights.sum()))]

    def values(self, node: int) -> tuple[Value, ...]:
        return self.closing.values[node]

    def numbers(self, node: int) -> bool:
        return all(is_number(value) for value in self.values(node))

    def small(self, most: int, numbers: bool = False) -> list[int]:
        """Sequences with so few values."""
        few = [n for n in self.sequences() if 1 < len(self.values(n)) <= most]
        return [n for n in few if self.numbers(n)] if numbers else few

    def type_of(self, node: int) -> type:
        """What sequences are compared by: numbers, or strings; there may be None among them."""
        kinds = {
            float if is_number(value) else type(value) for value in self.values(node) if value is not None
        }
        return kinds.pop() if len(kinds) == 1 else object

    # Nodes of each kind

    def select(self) -> int:
        keys = self.one(self.small(MOST_VALUES))
        if len(self.values(keys)) <= MOST_LISTED and self.chance(0.2):
            queries = self.one(self.small(MOST_LISTED))
            pairs = [
                pair
                for pair in product(self.values(keys), self.values(queries))
                if None not in pair and self.chance(0.4)
            ]
            return self.closing.add(Select(keys, queries, Pairs(frozenset(pairs))))
        own = self.type_of(keys)
        queries = self.one([n for n in self.small(MOST_VALUES) if self.type_of(n) == own])
        signs = COMPARISONS[:6] if own in (float, str) else ("==", "!=")
        return self.closing.add(Select(keys, queries, str(self.random.choice(signs))))

    def combine(self) -> int:
        chosen = self.selectors()
        if len(chosen) < 2:
            return self.select()
        first = self.one(chosen)
        sign = str(self.random.choice(["and", "or", "not"]))
        others = () if sign == "not" else (self.one([n for n in chosen if n != first]),)
        return self.closing.add(Combine(sign, (first, *others)))

    def some_selector(self) -> int:
        found = self.selectors()
        return self.one(found) if found and self.chance(0.8) else self.select()

    def width(self) -> int:
        return self.closing.add(Width(self.some_selector()))

    def mean(self) -> int:
        few = self.small(MOST_AVERAGED, numbers=True)
        if not few:
            return self.apply()
        sequence = self.one(few)
        default = None if self.chance(0.2) else self.value_of(sequence)
        return self.closing.add(Aggregate(self.some_selector(), sequence, default, True))

    def move(self) -> int:
        """From one position, or from positions whose values are equal, since their keys are."""
        if self.chance(0.3):
            keys = self.one(self.small(MOST_LISTED))
            queries = self.one([n for n in self.small(MOST_VALUES) if self.type_of(n) == self.type_of(keys)])
            selector = self.closing.add(Select(keys, queries, "=="))
            sequence = keys if self.chance(0.5) else self.listed(keys)
        else:
            queries = self.one(self.small(MOST_VALUES, numbers=True))
            if queries == self.indices:
                queries = self.closing.apply("-", (self.indices, self.constant(1, 4)))
            selector = self.closing.add(Select(self.indices, queries, "=="))
            sequence = self.one(self.small(MOST_VALUES))
        others = [own for own in self.selectors() if own != selector]
        if others and self.chance(0.2):
            selector = self.closing.add(Combine("and", (selector, self.one(others))))
        default = self.value_of(sequence) if self.chance(0.4) else None
        return self.closing.add(Aggregate(selector, sequence, default, False))

    def apply(self) -> int:
        first = self.one(self.small(MOST_VALUES))
        if len(self.values(first)) <= MOST_LISTED and self.chance(0.35):
            return self.listed(first)
        second = self.one([n for n in self.small(MOST_VALUES) if n != first])
        if max(len(self.values(first)), len(self.values(second))) <= MOST_LISTED and self.chance(0.25):
            return self.listed(first, second)
        if self.chance(0.5):
            constant = self.constant(0, 4) if self.numbers(first) else Full(self.value_of(first))
            second = constant if isinstance(constant, int) else self.closing.add(constant)
        arithmetic = self.numbers(first) and self.numbers(second)
        signs = ("+", "-", "*", "<", "<=", "==", "!=", "%", "and", "or") if arithmetic else ("==", "!=")
        return self.closing.apply(str(self.random.choice(signs)), (first, second))

    def listed(self, *arguments: int) -> int:
        """A function given by all its values: bits, small numbers or letters."""
        results = ((False, True), (0, 1, 2), tuple("xyz"))[int(self.random.integers(3))]
        entries = [
            (values, results[int(self.random.integers(len(results)))])
            for values in product(*(self.values(own) for own in arguments))
            if None not in values
        ]
        return self.closing.apply(Table(tuple(entries)), arguments)

    def constant(self, low: int, high: int) -> int:
        return self.closing.add(Full(int(self.random.integers(low, high))))

    def value_of(self, node: int) -> Value:
        """One of the values of a sequence, but not None."""
        found = [value for value in self.values(node) if value is not None]
        return found[int(self.random.integers(len(found)))] if found else 0


# Whether everything matters


def tried_inputs(program: RaspProgram) -> list[State]:
    """All short inputs of the first two tokens, and some of all tokens and lengths: the same for programs
    with as many tokens and the same greatest length."""
    tokens, length = program.vocabulary, program.length
    found = [word for size in range(1, SHORT + 1) for word in product(tokens[:2], repeat=min(size, length))]
    random = np.random.default_rng([len(tokens), length])
    for _ in range(LONGER):
        places = random.integers(0, len(tokens), int(random.integers(1, length + 1))).tolist()
        found.append(tuple(tokens[place] for place in places))
    return list(dict.fromkeys(found))


def _all_matters(program: RaspProgram) -> bool:
    """Whether the output varies, and would be another one without any of the nodes."""
    inputs = tried_inputs(program)
    found = [program.evaluate(word) for word in inputs]
    outputs = [every[program.output] for every in found]
    if len({value for own in outputs for value in own}) < 2:
        return False
    evaluated = [n for n, node in enumerate(program.nodes) if not isinstance(node, Full)]
    if len({repr([every[n] for every in found]) for n in evaluated}) < len(evaluated):
        return False
    for number in evaluated:
        node = program.nodes[number]
        if number == program.output:
            continue
        if isinstance(node, Sequence_):
            occurring = dict.fromkeys(value for every in found for value in every[number])
            held: Iterable[Value] = list(occurring)[:HELD]
        else:
            held = (False, True)
        for value in held:
            if all(
                _held(program, word, number, value) == own for word, own in zip(inputs, outputs, strict=True)
            ):
                return False
    return True


def _held(program: RaspProgram, word: State, node: int, value: Value) -> list[Value] | None:
    """The output where a sequence has one value everywhere, or a selector selects everything or nothing; None
    where there is none."""
    row = [value] * len(word)
    held = row if isinstance(program.nodes[node], Sequence_) else [row] * len(word)
    try:
        return program.evaluate(word, {node: held})[program.output]
    except (TapegradError, KeyError):  # values are mixed, and what comes of it is in no table
        return None
