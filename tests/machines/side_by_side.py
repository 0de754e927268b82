"""The check that every rewriting must pass: run both machines and compare every decoded state."""

from collections.abc import Sequence
from itertools import islice, pairwise
from typing import Any

from tapegrad.source import Rewriting


def check_side_by_side(
    rewriting: Rewriting, inputs: Sequence[Any], steps: int, limit: int = 20_000
) -> list[int]:
    """Steps both machines and compares; gives back, for each step of the first, how many steps the second
    took to get there. If the first machine halts within `steps`, so must the second, without decoding
    to anything more."""
    first = rewriting.before.start(*inputs)
    expected = list(islice(rewriting.before.run(first), steps + 1))
    halts = len(expected) <= steps
    times: list[int] = []
    ran_out = True
    for time, state in enumerate(rewriting.after.run(rewriting.encode(first))):
        decoded = rewriting.decode(state)
        if decoded is not None:
            assert len(times) < len(expected), "the rewritten machine goes on after the halt"
            assert decoded == expected[len(times)], f"step {len(times)}"
            times.append(time)
        if (not halts and len(times) == len(expected)) or time == limit:
            ran_out = False
            break
    assert len(times) == len(expected), "the rewritten machine stops, or is stuck, before the end"
    assert ran_out == halts, "one machine halts and the other does not"
    return [after - before for before, after in pairwise(times)]
