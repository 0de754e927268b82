"""RASP programs here and in Tracr: who is right, on how many weights, after how long.

`python -m bench.beside_tracr` writes the table of docs/rasp.md. Tracr runs in a process of its own, with the
Python that the variable TRACR_PYTHON names (one that can import `tracr`); without it only our columns are
filled. Both sides get the same programs, those of Tracr's own library, the same vocabulary, greatest length
and inputs; what is right is said by plain Python that knows neither.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

LENGTHS = (5, 10, 40, 149)
INPUTS = 4
SECONDS = 3600
"""For one side."""
MEMORY = 6 << 30
"""Bytes that a process may have."""

PROGRAMS: dict[str, tuple[Callable[[Any, Any, int], Any], list[Any]]] = {
    "length": (lambda lib, rasp, n: lib.make_length(), list("abcd")),
    "reverse": (lambda lib, rasp, n: lib.make_reverse(rasp.tokens), list("abcd")),
    "hist": (lambda lib, rasp, n: lib.make_hist(), list("abcd")),
    "sort_unique": (lambda lib, rasp, n: lib.make_sort_unique(rasp.tokens, rasp.tokens), list(range(1, 151))),
    "sort": (
        lambda lib, rasp, n: lib.make_sort(rasp.tokens, rasp.tokens, max_seq_len=n, min_key=1),
        [1, 2, 3, 4],
    ),
    "sort_freq": (lambda lib, rasp, n: lib.make_sort_freq(n), [1, 2, 3, 4]),
    "frac_prevs": (lambda lib, rasp, n: lib.make_frac_prevs(rasp.tokens == "a"), list("ab")),
    "pair_balance": (lambda lib, rasp, n: lib.make_pair_balance(rasp.tokens, "(", ")"), list("()")),
    "shuffle_dyck2": (lambda lib, rasp, n: lib.make_shuffle_dyck(["()", "{}"]), list("(){}")),
    "shift_by": (lambda lib, rasp, n: lib.shift_by(2, rasp.tokens), list("abcd")),
    "detect_pattern": (lambda lib, rasp, n: lib.detect_pattern(rasp.tokens, "abc"), list("abc")),
    "count_less_freq": (lambda lib, rasp, n: lib.make_count_less_freq(2), list("abcd")),
    "count": (lambda lib, rasp, n: lib.make_count(rasp.tokens, "a"), list("abc")),
}
"""An expression in the library, the language and the greatest length; and a vocabulary."""


def _dyck(tokens: list[str]) -> list[bool]:
    right = True
    for opens, closes in ("()", "{}"):
        depth = 0
        for token in tokens:
            depth += (token == opens) - (token == closes)
            right &= depth >= 0
        right &= depth == 0
    return [right] * len(tokens)


def _shares(tokens: list[str], worth: dict[str, int]) -> list[float]:
    return [
        float(Fraction(sum(worth.get(token, 0) for token in tokens[: place + 1]), place + 1))
        for place in range(len(tokens))
    ]


def _pattern(tokens: list[str]) -> list[bool | None]:
    return [
        None if place < 2 else tokens[place - 2 : place + 1] == list("abc") for place in range(len(tokens))
    ]


ORACLES: dict[str, Callable[[list[Any]], list[Any]]] = {
    "length": lambda t: [len(t)] * len(t),
    "reverse": lambda t: t[::-1],
    "hist": lambda t: [t.count(own) for own in t],
    "sort_unique": sorted,
    "sort": sorted,
    "sort_freq": lambda t: sorted(t, key=lambda own: -t.count(own)),
    "frac_prevs": lambda t: _shares(t, {"a": 1}),
    "pair_balance": lambda t: _shares(t, {"(": 1, ")": -1}),
    "shuffle_dyck2": _dyck,
    "shift_by": lambda t: [None, None, *t][: len(t)],
    "detect_pattern": _pattern,
    "count_less_freq": lambda t: [sum(t.count(own) <= 2 for own in t)] * len(t),
    "count": lambda t: [t.count("a")] * len(t),
}


def inputs(name: str, length: int) -> list[list[Any]]:
    """Most of the greatest length, one of one less; the same in every process."""
    random, vocabulary = np.random.default_rng(length), PROGRAMS[name][1]
    counts = [length] * (INPUTS - 1) + [length - 1]
    if name == "sort_unique":
        return [random.permutation(vocabulary[:length])[:count].tolist() for count in counts]
    return [[vocabulary[place] for place in random.integers(0, len(vocabulary), count)] for count in counts]


def vocabulary_of(name: str, length: int) -> list[Any]:
    """Tokens; those of numbers that differ are as many as there are positions."""
    return PROGRAMS[name][1][:length] if name == "sort_unique" else PROGRAMS[name][1]


def compared(found: list[Any], wanted: list[Any]) -> str:
    """Whether an output is right, fractions up to what single precision rounds. Where there is no value
    (None) Tracr's own tests do not look, so that this is told apart."""
    right = [
        x == y or (isinstance(x, float | int) and isinstance(y, float) and abs(x - y) < 1e-4)
        for x, y in zip(found, wanted, strict=True)
    ]
    if all(right):
        return "right"
    there = [own for own, value in zip(right, wanted, strict=True) if value is not None]
    return "wrong where there is no value" if all(there) else "wrong"


def ours(name: str, length: int) -> dict[str, Any]:
    """Compiled here."""
    import tapegrad as tg
    from tapegrad import rasp
    from tapegrad.errors import Refused
    from tapegrad.rasp import library as lib

    began = time.process_time()
    expression = PROGRAMS[name][0](lib, rasp, length)
    try:
        net = tg.compile(rasp.program(expression, vocabulary_of(name, length), length), "decoder")
    except Refused as refused:
        return {"refused": str(refused)}
    seconds = time.process_time() - began
    ends = []
    for tokens in inputs(name, length):
        state: Any = net.run(tokens).state
        found = [float(value) if isinstance(value, Fraction) else value for value in state]
        ends.append(compared(found, ORACLES[name](tokens)))
    parts: Any = net.net.parts  # type: ignore[attr-defined]
    tables = len(parts.embedding) + parts.positions.width + 1 + len(parts.unembedding)
    dense = parts.width * tables
    for layer in parts.layers:
        sides = (side for head in layer.heads for side in (head.query, head.key, head.value, head.value))
        dense += parts.width * (sum(map(len, sides)) + 2 * len(layer.units))
    return {"ends": ends, "weights": net.net.parameters, "dense": dense, "seconds": seconds}


def tracr(name: str, length: int) -> dict[str, Any]:
    """Compiled by Tracr, with its defaults."""
    import jax
    from tracr.compiler import compiling, lib
    from tracr.rasp import rasp

    began = time.process_time()
    expression = PROGRAMS[name][0](lib, rasp, length)
    model = compiling.compile_rasp_to_model(
        expression, vocab=set(vocabulary_of(name, length)), max_seq_len=length, compiler_bos="BOS"
    )
    seconds = time.process_time() - began
    ends = [
        compared(model.apply(["BOS", *tokens]).decoded[1:], ORACLES[name](tokens))
        for tokens in inputs(name, length)
    ]
    arrays = [np.asarray(own) for own in jax.tree_util.tree_leaves(model.params)]
    return {
        "ends": ends,
        "weights": int(sum(np.count_nonzero(own) for own in arrays)),
        "dense": int(sum(own.size for own in arrays)),
        "seconds": seconds,
    }


def apart(python: str, side: str) -> dict[tuple[str, int], dict[str, Any]]:
    """All programs of one side, in a process of its own, as far as it gets."""
    found = {}
    with subprocess.Popen([python, __file__, side], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            own = json.loads(line)
            found[own["program"], own["length"]] = own
            print(f"{side}: {own}", file=sys.stderr, flush=True)
    return found


def cell(found: dict[str, Any] | None) -> str:
    """A side in a few words."""
    if found is None:
        return "-"
    if "refused" in found:
        return "refused" if "Ask for" in found["refused"] or "will do" in found["refused"] else "failed"
    ends = Counter(found["ends"])
    verdict = ", ".join(end if count == INPUTS else f"{count} {end}" for end, count in ends.items())
    return f"{verdict}, {found['weights']:,} of {found['dense']:,}, {found['seconds']:.1f} s"


def main() -> None:
    """The table."""
    other = os.environ.get("TRACR_PYTHON")
    own, theirs = apart(sys.executable, "ours"), apart(other, "tracr") if other else {}
    print("| program | length | here | Tracr |\n|---|---:|---|---|")
    for name in PROGRAMS:
        for length in LENGTHS:
            sides = [cell(found.get((name, length))) for found in (own, theirs)]
            print(f"| `{name}` | {length} | {' | '.join(sides)} |")


def cases() -> None:
    """Tracr's own test cases, and those that it says it does not support, compiled here from its own objects:
    `python -m bench.beside_tracr cases`, for a Python that can import both."""
    from tracr.compiler import test_cases

    import tapegrad as tg
    from tapegrad import rasp

    right = 0
    given = [(own, False) for own in test_cases.TEST_CASES] + [
        (own, True) for own in test_cases.CAUSAL_TEST_CASES
    ]
    for case, causal in given:
        length = max(case["max_seq_len"], len(case["test_input"]))
        made = rasp.program(rasp.from_tracr(case["program"]), case["vocab"], length, causal)
        state: Any = tg.compile(made, "decoder").run(case["test_input"]).state
        found = [float(value) if isinstance(value, Fraction) else value for value in state]
        right += compared(found, case["expected_output"]) == "right"
    print(f"{right} of {len(given)} test cases right")
    agreed = 0
    for case in test_cases.UNSUPPORTED_TEST_CASES:
        made = rasp.program(rasp.from_tracr(case["program"]), case["vocab"], case["max_seq_len"])
        report = tg.verify(tg.compile(made, "decoder"))
        agreed += report.agreed and report.exhaustive
    print(f"{agreed} of {len(test_cases.UNSUPPORTED_TEST_CASES)} unsupported cases right on all inputs")


def one(side: str) -> None:
    """All programs of one side; a line of JSON for each length."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    signal.alarm(SECONDS)
    compiled = {"ours": ours, "tracr": tracr}[side]
    compiled("shift_by", 3)  # what is imported and compiled once is not measured
    for length in sorted(LENGTHS, key=lambda own: abs(own - 20)):  # what tells most comes first
        for name in PROGRAMS:
            try:
                found = compiled(name, length)
            except Exception as error:  # whatever Tracr may raise
                found = {"refused": f"{type(error).__name__}: {error}"[:200]}
            print(json.dumps({"program": name, "length": length, **found}), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["cases"]:
        cases()
    elif len(sys.argv) > 1:
        one(sys.argv[1])
    else:
        main()
