"""The proof that a transformer of gates and heads is a Turing machine: of every size, and of no other one;
tables and decision diagrams, compared with brute force."""

import copy
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from tapegrad._sources import source_to_json
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.machines.sampler import random_machine
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE
from tapegrad_check.formulas.diagrams import Diagrams
from tapegrad_check.sources import model_of
from tapegrad_check.targets import tapes
from tests.check.altering import net_of

LETTERS = TuringMachine(
    {
        ("a", ("_", "x")): Rule(("y", "x"), (1, -1), "b"),
        ("a", ("y", "_")): Rule(("_", "x"), (-1, 0), "a"),
        ("b", ("x", "x")): Rule(("y", "_"), (0, 1), "a"),
        ("b", ("_", "_")): Rule(("_", "y"), (0, 0), "b"),
    },
    "a",
    blank="_",
    alphabet=("x", "_", "y"),
)
"""Two symbols beside the blank, which is in the midst of them; heads stay, move and change places."""


def others(rule: Any) -> list[Any]:
    """Rules that differ in one thing."""
    found = [replace(rule, state="b" if rule.state == "a" else "a")]
    for tape in (0, 1):
        for symbol in {"x", "_", "y"} - {rule.write[tape]}:
            write = tuple(symbol if at == tape else own for at, own in enumerate(rule.write))
            found.append(replace(rule, write=write))
        for move in {-1, 0, 1} - {rule.moves[tape]}:
            moves = tuple(move if at == tape else own for at, own in enumerate(rule.moves))
            found.append(replace(rule, moves=moves))
    return found


def test_no_net_is_that_of_a_machine_with_another_rule() -> None:
    net = net_of(LETTERS, "transformer", {"steps": 2, "form": "practical"})
    assert net.verdict("transformer") == COMPUTES_SOURCE
    for case, rule in LETTERS.rules.items():
        rest = {key: own for key, own in LETTERS.rules.items() if key != case}
        for rules in (rest, *({**LETTERS.rules, case: other} for other in others(rule))):
            data = source_to_json(replace(LETTERS, rules=rules))[0]
            forged = copy.deepcopy(net)
            forged.config["machine"]["source"], forged.source = data, model_of(data, {})
            with pytest.raises(CheckError, match=r"source says|goes elsewhere|another size"):
                forged.verdict("transformer")


def test_machines_of_every_size_pass() -> None:
    """One symbol, no symbol but the blank, no rule that applies; one tape to four."""
    for seed, (count, symbols) in enumerate(product((1, 2, 3, 4), (1, 2, 3))):
        if symbols**count > 30:
            continue
        machine = random_machine(seed, tapes=count, symbols=symbols, states=2, stay=bool(seed % 2))
        net = net_of(machine, "transformer", {"steps": 1 + seed, "form": "practical"})
        found = net.checked("transformer")
        assert found.verdict == COMPUTES_SOURCE
        said = f"for all of {len(machine.rules):,} rules"
        assert any(said in statement for statement in found.statements)
        positions = f"for all of {1 << (2 * (1 + seed)).bit_length():,} positions"
        assert positions in found.statements[-1]


# Tables


def test_packed_flags_are_bits_from_the_lowest() -> None:
    assert [tapes._packed(flags) for flags in ([], [0], [1], [1, 0], [0, True, "x"])] == [0, 0, 1, 1, 6]


@pytest.mark.parametrize("seed", range(4))
def test_circuits_in_all_cases_and_as_diagrams(seed: int) -> None:
    """Random gates of one to three inputs over four variables: each of 16 cases by itself, all at once, and
    as diagrams, which are equal for equal functions and no others."""
    random = np.random.default_rng(seed)
    gates: dict[int, tuple[list[int], int]] = {}
    for place in range(4, 30):
        inputs = random.choice(place, random.integers(1, 4), replace=False).tolist()
        gates[place] = inputs, int(random.integers(1 << (1 << len(inputs))))

    def value(place: int, bits: tuple[int, ...]) -> int:
        if place < 4:
            return bits[place]
        inputs, table = gates[place]
        return table >> sum(value(own, bits) << slot for slot, own in enumerate(inputs)) & 1

    cases = list(product((0, 1), repeat=4))
    packed = {variable: tapes._packed([case[variable] for case in cases]) for variable in range(4)}
    diagrams = Diagrams(1 << 10)
    variables = {number: diagrams.variable(number) for number in range(4)}
    functions: dict[int, int] = {}
    for place in range(30):
        wanted = tapes._packed([value(place, case) for case in cases])
        assert tapes._evaluated(gates, place, dict(packed), (1 << 16) - 1) == wanted
        node = tapes._diagram(diagrams, gates, place, dict(variables))
        assert functions.setdefault(wanted, node) == node
    assert len(set(functions.values())) == len(functions)
    assert [functions.get(constant, node) for node, constant in ((0, 0), (1, (1 << 16) - 1))] == [0, 1]
    with pytest.raises(CheckError, match="more than the rule"):
        tapes._diagram(diagrams, gates, 29, {})
