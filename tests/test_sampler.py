"""Random programs: the same for the same seed everywhere, and of the sizes asked for."""

import hashlib

import numpy as np
import pytest

from tapegrad.circuits import Gate
from tapegrad.circuits.sampler import random_circuit
from tapegrad.errors import Refused
from tapegrad.machines import STAY
from tapegrad.machines.sampler import random_grid_machine, random_machine

FINGERPRINTS = ["4d9d946d11de", "de13de0284f7", "2a09162f642b"]


def test_seeds_are_fixed_for_good() -> None:
    """Fingerprints recorded once: a change here changes every data set made with the sampler."""
    machine, grid = random_machine(7, states=3, symbols=3, tapes=2), random_grid_machine(7)
    circuit = random_circuit(7, kinds=tuple(Gate), depth=5)
    texts = [repr(sorted(machine.rules.items())), repr(sorted(grid.rules.items(), key=lambda rule: rule[0]))]
    arrays = (circuit.kinds, circuit.left, circuit.right, circuit.output_wires)
    texts.append(repr([array.tolist() for array in arrays]))
    assert [hashlib.sha256(text.encode()).hexdigest()[:12] for text in texts] == FINGERPRINTS


def test_seeds_matter() -> None:
    assert random_machine(1).rules != random_machine(2).rules
    assert not np.array_equal(random_circuit(1).left, random_circuit(2).left)


def test_machines_have_the_sizes_asked_for() -> None:
    machine = random_machine(3, states=5, symbols=4, tapes=2, halt=0, stay=False)
    assert (len(machine.states), len(machine.alphabet), machine.tapes) == (5, 4, 2)
    assert len(machine.rules) == 5 * 4**2
    assert all(STAY not in rule.moves for rule in machine.rules.values())
    assert not random_machine(3, halt=1).rules
    halting = sum(20 * 10 - len(random_machine(s, states=20, symbols=10, halt=0.25).rules) for s in range(20))
    assert 800 < halting < 1200
    assert len(random_grid_machine(3, states=4, symbols=3, halt=0).rules) == 12
    assert all(rule.move != "stay" for rule in random_grid_machine(3, states=9, stay=False).rules.values())


def test_circuits_have_the_sizes_asked_for() -> None:
    for seed in range(10):
        circuit = random_circuit(seed, inputs=5, size=60, outputs=7, depth=6, kinds=(Gate.AND, Gate.XOR))
        assert (len(circuit.inputs), circuit.size, len(circuit.outputs)) == (5, 60, 7)
        assert circuit.levels().max() == 6
        assert set(circuit.kinds.tolist()) == {Gate.AND, Gate.XOR}
    rare = random_circuit(0, size=10_000, kinds={Gate.OR: 9, Gate.NOT: 1, Gate.ID: 0})
    assert 850 < np.sum(rare.kinds == Gate.NOT) < 1150
    assert not np.any(rare.kinds == Gate.ID)


def test_requests_that_make_no_sense_are_refused() -> None:
    for ask in (
        lambda: random_machine(-1),
        lambda: random_machine(0, states=0),
        lambda: random_machine(0, symbols=10, tapes=9),
        lambda: random_circuit(0, size=-1),
        lambda: random_circuit(0, size=3, depth=4),
        lambda: random_circuit(0, kinds=()),
    ):
        with pytest.raises(Refused):
            ask()
