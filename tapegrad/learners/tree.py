"""Decision trees of a given depth, grown level by level as CART grows them, from counts kept in memory.

A level takes a round of all `samples` samples, which are counted in the node that they come to, and then one
more sample for each node of the level and each feature: what these are does not matter, they only move the
clock. They compare one feature with the best one so far, so that the circuit has one comparison and not one
for every feature. Shown the same data round after round, the tree is the one that a batch algorithm grows.

For two classes the decrease in Gini impurity is (a N - P m)^2 / (m (N - m)), times a number that is the same
for all features of a node: N samples of the node, P of them of class 1, m with the feature, a of these of
class 1. So two features are compared by products of integers, without rounding.
"""

from typing import Any

from tapegrad.circuits import Array, Bit, UInt, array, where
from tapegrad.circuits.types import Layout
from tapegrad.errors import SourceError
from tapegrad.learners.asked import AskedLearner, Scores, asked

DEEPEST = 6


def decision_stump(n: int, samples: int, *, scores: bool = False) -> AskedLearner:
    """A tree with one question."""
    return decision_tree(n, samples, 1, scores=scores)


def steps_to_grow(n: int, samples: int, depth: int) -> int:
    """How many samples a tree learns from until it is done: the rounds, and what moves the clock."""
    return depth * samples + n * ((1 << depth) - 1)


def decision_tree(n: int, samples: int, depth: int = 2, *, scores: bool = False) -> AskedLearner:
    """The tree of `DecisionTreeClassifier(max_depth=depth)` of scikit-learn (CART with Gini impurity) on bits
    and two classes, if every round has the same samples. Of several features that are equally good it takes
    the first, where scikit-learn takes one at random; of two classes equally frequent in a leaf, 0. Its
    scores are how many samples came to the leaf, and how many of them were of class 1.

    A node that no feature divides has no split, and sends all to its first child.
    """
    if not 1 <= depth <= DEEPEST or samples < 1:
        raise SourceError(
            f"a tree has a depth of 1 to {DEEPEST} and at least one sample, not {depth} and {samples}"
        )
    width, slots, nodes = samples.bit_length(), 1 << depth - 1, (1 << depth) - 1
    count, square = UInt(width), UInt(2 * width)
    feature, level, slot = UInt(n.bit_length()), UInt(depth.bit_length()), UInt(depth)
    best: dict[str, Layout] = {
        "feature": feature, "ones": count, "both": count, "gain": UInt(4 * width), "parts": square,
    }  # fmt: skip
    memory: dict[str, Layout] = {
        "level": level,  # that is being grown; `depth` when done
        "seen": count,  # samples of the round; then features are compared
        "slot": slot,  # of the node whose features are compared
        "at": feature,
        "size": Array(count, slots),  # of the nodes of this level, and so on
        "positive": Array(count, slots),
        "ones": Array(count, slots, n),
        "both": Array(count, slots, n),
        "best": best,
        "splits": Array(Bit, nodes),
        "features": Array(feature, nodes),
        "leaf_size": Array(count, 2 * slots),
        "leaf_positive": Array(count, 2 * slots),
    }

    def reached(memory: Any, x: Any) -> list[list[Any]]:
        """For every level, and the leaves, which of its nodes the point comes to."""
        levels = [[Bit(1)]]
        for above in range(depth):
            row = []
            for number, here in enumerate(levels[-1]):
                node = (1 << above) - 1 + number
                right = memory["splits"][node] & x[memory["features"][node]]
                row += [here & ~right, here & right]
            levels.append(row)
        return levels

    def counted(memory: Any, x: Any, y: Any) -> dict[str, Any]:
        """One more sample of the round."""
        levels = reached(memory, x)
        after: dict[str, list[Any]] = {"size": [], "positive": [], "ones": [], "both": []}
        for number in range(slots):
            own = [(memory["level"] == at) & levels[at][number] for at in range(depth) if number < 1 << at]
            here = own[0]
            for other in own[1:]:
                here = here | other
            after["size"].append(memory["size"][number] + here)
            after["positive"].append(memory["positive"][number] + (here & y))
            after["ones"].append([k + (here & bit) for k, bit in zip(memory["ones"][number], x, strict=True)])
            both = zip(memory["both"][number], x, strict=True)
            after["both"].append([k + (here & bit & y) for k, bit in both])
        return {**memory, **{key: array(rows) for key, rows in after.items()}, "seen": memory["seen"] + 1}

    def compared(memory: Any) -> dict[str, Any]:
        """One feature of one node beside the best so far; after the last, the node has its split."""
        here, at, so_far = memory["slot"], memory["at"], memory["best"]
        size, positive = memory["size"][here], memory["positive"][here]
        ones, both = memory["ones"][here][at], memory["both"][here][at]
        a_n, p_m = both.to(square) * size.to(square), positive.to(square) * ones.to(square)
        root = where(a_n < p_m, p_m - a_n, a_n - p_m).to(UInt(4 * width))
        parts = ones.to(square) * (size - ones).to(square)
        gain, long = root * root, UInt(6 * width)
        better = gain.to(long) * so_far["parts"].to(long) > so_far["gain"].to(long) * parts.to(long)
        taken = (parts != 0) & (better | (so_far["parts"] == 0))
        this = {"feature": at, "ones": ones, "both": both, "gain": gain, "parts": parts}
        now = where(taken, this, so_far)
        last_feature = at == n - 1
        last_node = last_feature & ((here + 1) == (slot(1) << memory["level"]))
        return {
            **memory,
            **_split(memory, now, last_feature, size, positive),
            "best": {key: where(last_feature, 0, own) for key, own in now.items()},
            "at": where(last_feature, 0, at + 1),
            "slot": where(last_node, 0, where(last_feature, here + 1, here)),
            "level": where(last_node, memory["level"] + 1, memory["level"]),
            "seen": where(last_node, 0, memory["seen"]),
            **{key: where(last_node, Array.value([0] * slots), memory[key]) for key in ("size", "positive")},
            **{key: _cleared(last_node, memory[key]) for key in ("ones", "both")},
        }

    def _cleared(condition: Any, rows: Any) -> Any:
        return array([[where(condition, 0, k) for k in row] for row in rows])

    def _split(memory: Any, now: Any, ends: Any, size: Any, positive: Any) -> dict[str, Any]:
        """The tree with the split of the node whose features have all been compared."""
        splits, features = [], []
        leaf_size, leaf_positive = [], []
        for above in range(depth):
            for number in range(1 << above):
                node = (1 << above) - 1 + number
                here = ends & (memory["level"] == above) & (memory["slot"] == number)
                splits.append(where(here, now["parts"] != 0, memory["splits"][node]))
                features.append(where(here, now["feature"], memory["features"][node]))
                if above == depth - 1:
                    sizes, ones = (size - now["ones"], now["ones"]), (positive - now["both"], now["both"])
                    for child in range(2):
                        old = 2 * number + child
                        leaf_size.append(where(here, sizes[child], memory["leaf_size"][old]))
                        leaf_positive.append(where(here, ones[child], memory["leaf_positive"][old]))
        found = {"splits": splits, "features": features}
        found |= {"leaf_size": leaf_size, "leaf_positive": leaf_positive}
        return {key: array(values) for key, values in found.items()}

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        after = where(memory["seen"] == samples, compared(memory), counted(memory, x, y))
        return {key: after[key] for key in memory}

    def leaf(memory: Any, x: Any) -> list[Any]:
        """Samples of the leaf that the point comes to, and those of class 1."""
        which = reached(memory, x)[-1]
        words = []
        for counts in (memory["leaf_size"], memory["leaf_positive"]):
            word = count(0)
            for here, own in zip(which, counts, strict=True):
                word = word | where(here, own, count(0))
            words.append(word)
        return words

    def predict(memory: Any, x: Any) -> Any:
        size, positive = leaf(memory, x)
        return positive > size - positive

    return asked(
        name=f"decision tree of depth {depth} of {n} bits",
        features=n,
        memory=memory,
        update=update,
        predict=predict,
        done=lambda memory: memory["level"] == depth,
        scores=Scores([count, count], leaf) if scores else None,
    )
