"""Ready learners by name and width, each with samples of something that it can learn."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from tapegrad.circuits import Array, Bit, UInt, all_of, any_of, array, smallest, where
from tapegrad.circuits import parity as parity_of
from tapegrad.errors import InputError, SourceError
from tapegrad.learners.bayes import naive_bayes
from tapegrad.learners.counted import learner_of
from tapegrad.learners.functions import FunctionLearner
from tapegrad.learners.linear import perceptron, winnow
from tapegrad.learners.neighbours import nearest
from tapegrad.learners.tree import decision_stump, decision_tree

# Decision lists: if x3 then 1, else if not x1 then 0, ... else 1.


def decision_list(n: int, samples: int) -> FunctionLearner:
    """Learns a list of rules "literal -> label" by demotion.

    Every one of the 2 (2n + 1) rules, the empty literal included, starts at level 0. The answer is that of
    the rules at the lowest level among those that apply. A sample demotes, by one level, the rules that
    applied there with the wrong label. Rule k of a consistent list never falls below level k, so n + 2
    levels suffice.
    """
    deepest = n + 2
    level = UInt(deepest.bit_length())

    def literals(x: Any) -> list[Any]:
        return [*x, *(~x), Bit(1)]

    def deciding(memory: Any, x: Any) -> tuple[list[Any], list[Any]]:
        """For each label, which of its rules stand at the lowest level that applies."""
        apply = literals(x)
        levels = [*memory["for_0"], *memory["for_1"]]
        lowest = smallest(
            where(a, rule, level(deepest)) for rule, a in zip(levels, [*apply, *apply], strict=True)
        )
        at = [a & (rule == lowest) for rule, a in zip(levels, [*apply, *apply], strict=True)]
        return at[: len(apply)], at[len(apply) :]

    def predict(memory: Any, x: Any) -> Any:
        return any_of(deciding(memory, x)[1])

    def demoted(levels: Any, at: list[Any], wrong: Any) -> Any:
        falls = [wrong & here & (rule < deepest) for rule, here in zip(levels, at, strict=True)]
        return array([where(fall, rule + 1, rule) for rule, fall in zip(levels, falls, strict=True)])

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        for_0, for_1 = deciding(memory, x)
        return {"for_0": demoted(memory["for_0"], for_0, y), "for_1": demoted(memory["for_1"], for_1, ~y)}

    return learner_of(
        samples,
        name=f"decision list of {n} bits",
        x=Array(Bit, n),
        memory={"for_0": Array(level, 2 * n + 1), "for_1": Array(level, 2 * n + 1)},
        update=update,
        predict=predict,
    )


# A randomised learner: it needs the random bits that come with the samples.


def dictator(n: int, checks: int) -> FunctionLearner:
    """Finds the one bit of x that the label copies, by drawing indices at random.

    It collects random bits, one from each sample, until it has an index; then it tests the index on up to
    `checks` samples, starts over at the first contradiction, and is done when all were passed. An index
    beyond n is contradicted at once.
    """
    width = max((n - 1).bit_length(), 1)
    index, drawn, passed = UInt(width), UInt(width.bit_length()), UInt(checks.bit_length())

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        drawing = memory["drawn"] < width
        holds = (memory["index"] < n) & ~(x[memory["index"]] ^ y)
        shifted = (memory["index"] << 1) | r
        return {
            "index": where(drawing, shifted, memory["index"]),
            "drawn": where(drawing, memory["drawn"] + 1, where(holds, memory["drawn"], drawn(0))),
            "passed": where(holds & ~drawing, memory["passed"] + 1, passed(0)),
        }

    return FunctionLearner(
        name=f"dictator of {n} bits",
        x=Array(Bit, n),
        memory={"index": index, "drawn": drawn, "passed": passed},
        update=update,
        predict=lambda memory, x: x[memory["index"]],
        done=lambda memory: memory["passed"] == checks,
    )


# Parities, learned by online Gaussian elimination (Example 1).


def parity(n: int) -> FunctionLearner:
    """Learns the parity of a hidden subset of n bits from n linearly independent samples.

    The samples are kept in echelon form. Row i starts at column i: its first bit, the pivot, says whether
    the row is there at all, so that n(n + 1)/2 bits of rows and n labels suffice. A new sample is reduced
    by the rows it meets until it leads where there is no row yet, and becomes that row.
    """

    def reduced(memory: Any, x: Any, label: Any) -> list[tuple[Any, Any]]:
        """What is left of the sample at each column, cut off before it, and its label there."""
        stages = []
        for i, row in enumerate(memory["rows"]):
            stages.append((x, label))
            meets = x[0] & row[0]
            label = label ^ (meets & memory["labels"][i])
            if i + 1 < n:
                x = (x ^ where(meets, row, row.type(0)))[1:]
        stages.append((x, label))
        return stages

    def update(memory: Any, x: Any, y: Any, r: Any) -> Any:
        stored, rows, labels = Bit(0), [], []
        for i, (rest, label) in enumerate(reduced(memory, x, y)[:-1]):
            row, here = memory["rows"][i], memory["labels"][i]
            fresh = rest[0] & ~row[0] & ~stored
            rows.append(row ^ where(fresh, rest, rest.type(0)))  # an absent row is zero
            labels.append(here ^ (fresh & label))
            stored = stored | fresh
        return {"rows": rows, "labels": labels}

    def predict(memory: Any, x: Any) -> Any:
        return reduced(memory, x, Bit(0))[-1][1]

    def done(memory: Any) -> Any:
        return all_of(row[0] for row in memory["rows"])

    return FunctionLearner(
        name=f"parity of {n} bits",
        x=UInt(n),
        memory={"rows": [UInt(n - i) for i in range(n)], "labels": [Bit] * n},
        update=update,
        predict=predict,
        done=done,
        online=True,  # with every row present there is nothing left to change
    )


# Parities from samples of which some have the wrong label.


def robust_parity(n: int, samples: int, size: int | None = None) -> FunctionLearner:
    """Counts, for every subset of the n bits (of at most `size` of them), the samples that contradict its
    parity, and answers with the subset that has the fewest. Wrong labels contradict all subsets alike, so
    that, unlike elimination, it withstands any rate of noise below one half, given enough samples."""
    subsets = [s for k in range((n if size is None else size) + 1) for s in combinations(range(n), k)]
    if len(subsets) > 1 << 12:
        raise SourceError(
            f"{len(subsets):,} subsets are too many to count for", advice="Give a smaller n, or a size."
        )
    count = UInt(samples.bit_length())

    def says(subset: tuple[int, ...], x: Any) -> Any:
        return parity_of(x[i] for i in subset)

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        wrong = [says(subset, x) ^ y for subset in subsets]
        counts = zip(memory["wrong"], wrong, strict=True)
        return {"wrong": array([where(w, c + 1, c) for c, w in counts])}

    def predict(memory: Any, x: Any) -> Any:
        contenders = [(c, says(s, x)) for c, s in zip(memory["wrong"], subsets, strict=True)]
        while len(contenders) > 1:
            rest = contenders[len(contenders) // 2 * 2 :]
            pairs = zip(contenders[::2], contenders[1::2], strict=False)
            contenders = [(where(b[0] < a[0], b[0], a[0]), where(b[0] < a[0], b[1], a[1])) for a, b in pairs]
            contenders += rest
        return contenders[0][1]

    return learner_of(
        samples,
        name=f"robust parity of {n} bits",
        x=Array(Bit, n),
        memory={"wrong": Array(count, len(subsets))},
        update=update,
        predict=predict,
    )


# Majority and conjunctions.


def majority(n: int, samples: int) -> FunctionLearner:
    """Ignores x and answers the label that most of the samples had (0 at a tie)."""

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        return {"ones": memory["ones"] + y}

    return learner_of(
        samples,
        name=f"majority of {samples} labels",
        x=Array(Bit, n),
        memory={"ones": UInt(samples.bit_length())},
        update=update,
        predict=lambda memory, x: memory["ones"] > samples // 2,
    )


def conjunction(n: int, samples: int) -> FunctionLearner:
    """Learns a conjunction of literals by elimination: start from all 2n literals and strike out those
    that a positive sample contradicts. Never wrong on a negative sample."""

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        struck = memory["struck"]
        return {
            "struck": {
                "positive": where(y, struck["positive"] | ~x, struck["positive"]),
                "negated": where(y, struck["negated"] | x, struck["negated"]),
            }
        }

    def predict(memory: Any, x: Any) -> Any:
        struck = memory["struck"]
        return all_of([*(struck["positive"] | x), *(struck["negated"] | ~x)])

    return learner_of(
        samples,
        name=f"conjunction of {n} bits",
        x=Array(Bit, n),
        memory={"struck": {"positive": Array(Bit, n), "negated": Array(Bit, n)}},
        update=update,
        predict=predict,
    )


Labelling = Callable[[np.ndarray], np.ndarray]

NAME = re.compile(r"learn-([a-z-]+?)(\d+)")
SHOWN_WIDTH, LARGEST = 8, 64


@dataclass(frozen=True)
class ReadyLearner:
    """A learner that comes with the package; `label` is a hidden concept from its class."""

    summary: str
    build: Callable[[int], FunctionLearner]
    label: Labelling
    shown: int = 0
    """Samples that an example has at least, where the learner needs many: it loses about half of them."""


def _every_third(x: np.ndarray) -> np.ndarray:
    return x[:, ::3]


KINDS: Mapping[str, ReadyLearner] = {
    "parity": ReadyLearner(
        "parity of hidden bits, by Gaussian elimination", parity, lambda x: _every_third(x).sum(1) % 2
    ),
    "conjunction": ReadyLearner(
        "AND of hidden bits, by elimination", lambda n: conjunction(n, 32), lambda x: x[:, 0] * x[:, -1]
    ),
    "dictator": ReadyLearner("one hidden bit", lambda n: dictator(n, 8), lambda x: x[:, -1]),
    "majority": ReadyLearner(
        "the more frequent label", lambda n: majority(n, 15), lambda x: x.sum(1) > x.shape[1] // 3
    ),
    "perceptron": ReadyLearner(
        "a threshold of integer weights", lambda n: perceptron(n, 127), lambda x: x[:, 0] | x[:, -1], 300
    ),
    "decision-list": ReadyLearner(
        "if this bit then that, else ...",
        lambda n: decision_list(n, 64),
        lambda x: np.where(x[:, 0], 1, 1 - x[:, -1]),
        160,
    ),
    "nearest": ReadyLearner("the label of the nearest sample", lambda n: nearest(n, 32), lambda x: x[:, 0]),
    "winnow": ReadyLearner(
        "weights doubled and halved at mistakes", lambda n: winnow(n, 64), lambda x: x[:, 0] | x[:, -1], 160
    ),
    "naive-bayes": ReadyLearner("naive Bayes from counts", lambda n: naive_bayes(n, 31), lambda x: x[:, -1]),
    "stump": ReadyLearner(
        "the one bit that tells most", lambda n: decision_stump(n, 31), lambda x: 1 - x[:, -1]
    ),
    "tree": ReadyLearner(
        "a decision tree of depth 2",
        lambda n: decision_tree(n, 31),
        lambda x: np.where(x[:, -1], x[:, 0], 0),
        260,
    ),
}


class _Ready(Mapping[str, ReadyLearner]):
    """`learn-parity8`, `learn-conjunction5`, ...: every kind at every width; listing shows width 8."""

    def __getitem__(self, name: str) -> ReadyLearner:
        found = NAME.fullmatch(name)
        if found is None or found[1] not in KINDS or not 1 <= int(found[2]) <= LARGEST:
            raise KeyError(name)
        return KINDS[found[1]]

    def __iter__(self) -> Iterator[str]:
        return (f"learn-{kind}{SHOWN_WIDTH}" for kind in KINDS)

    def __len__(self) -> int:
        return len(KINDS)


READY: Mapping[str, ReadyLearner] = _Ready()


def ready(name: str) -> FunctionLearner:
    """The learner of this name."""
    if name not in READY:
        raise InputError(f"there is no ready learner {name!r}", advice=f"Try {', '.join(READY)}.")
    return READY[name].build(_width(name))


def example_samples(name: str, count: int | None = None, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random samples, labelled by the hidden concept of this learner; default 100 for 8 bits, or more."""
    count = max(4 + 12 * _width(name), READY[name].shown) if count is None else count
    x = np.random.default_rng(seed).integers(0, 2, (count, _width(name)), np.uint8)
    return x, READY[name].label(x).astype(np.uint8)


def _width(name: str) -> int:
    found = NAME.fullmatch(name)
    assert found is not None
    return int(found[2])
