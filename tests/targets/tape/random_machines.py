"""Random machines of one size, so that the compiled training loop is shared by all examples."""

from itertools import product

import numpy as np

from tapegrad.machines.model import Configuration, Rule, TuringMachine


def random_machine(seed: int, tapes: int, states: int = 3) -> TuringMachine:
    """Binary, stay-free, with a full table; one entry in eight or so leads to the halting state."""
    random = np.random.default_rng(seed)
    names = [f"q{i}" for i in range(states)]
    rules = {}
    for state, read in product(names, product("01", repeat=tapes)):
        after = "halt" if random.random() < 1 / 8 else names[random.integers(states)]
        write = tuple("01"[random.integers(2)] for _ in range(tapes))
        moves = tuple(int(random.choice([-1, 1])) for _ in range(tapes))
        rules[state, read] = Rule(write, moves, after)
    return TuringMachine(
        rules, "q0", blank="0", alphabet=("0", "1"), states=(*names, "halt"), accept=frozenset({"halt"})
    )


def random_start(seed: int, machine: TuringMachine) -> Configuration:
    """Random words of eight symbols around cell 0."""
    random = np.random.default_rng(seed)
    tapes = tuple(
        {int(cell): "1" for cell in range(-4, 4) if random.random() < 1 / 2} for _ in range(machine.tapes)
    )
    return Configuration(machine.start_state, tapes, (0,) * machine.tapes)
