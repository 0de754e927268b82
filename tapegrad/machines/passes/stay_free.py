"""No head ever stays: a stay becomes a step to the right and a step back."""

from itertools import product

from tapegrad.lowering.rewriting import Rewriting
from tapegrad.machines.model import LEFT, RIGHT, STAY, Configuration, Rule, TuringMachine
from tapegrad.machines.names import Names, refuse_if_huge


def stay_free(machine: TuringMachine) -> Rewriting:
    """Rewrites a machine so that every head moves at every step.

    Guarantee: no rule of the new machine has a stay move. Three cases, the cheapest that is possible:
    no rule stays: the machine itself. Some rules move no head at all and the others move every head (so
    always on one tape): each of the former takes two steps, the rest one, and cells keep their places.
    Some rule moves one head and not another: every step takes exactly two, and cell i lies at 2 i.

    The last case needs the stretched tapes: when every head moves at every step, the cells under any two
    heads keep the same parity of distance, so a head cannot fall behind another by one cell.
    """
    staying = [rule for rule in machine.rules.values() if STAY in rule.moves]
    if not staying:
        return Rewriting("stay-free", machine, machine, lambda state: state, lambda state: state)
    if any(any(rule.moves) for rule in staying):
        return _stretched(machine)
    return _in_place(machine)


def _in_place(machine: TuringMachine) -> Rewriting:
    names = Names(machine.states)
    halfway = {}
    rules = {}
    for (state, read), rule in machine.rules.items():
        if STAY in rule.moves:
            back = halfway.setdefault(rule.state, names(rule.state, f"{rule.state} after a step back"))
            rules[state, read] = Rule(rule.write, (RIGHT,) * machine.tapes, back)
        else:
            rules[state, read] = rule
    refuse_if_huge(
        len(halfway) * len(machine.alphabet) ** machine.tapes,
        "stepping back over every combination of symbols",
        "Join the tapes with one_tape first.",
    )
    for state, back in halfway.items():
        for read in product(machine.alphabet, repeat=machine.tapes):
            rules[back, read] = Rule(read, (LEFT,) * machine.tapes, state)
    between = frozenset(halfway.values())
    return Rewriting(
        "stay-free",
        machine,
        _like(machine, rules),
        lambda state: state,
        lambda state: None if state.state in between else state,
    )


def _stretched(machine: TuringMachine) -> Rewriting:
    """Odd cells are always blank, so the second half of a step needs one rule only."""
    names = Names(machine.states)
    blanks = (machine.blank,) * machine.tapes
    rules = {}
    between = set()
    for (state, read), rule in machine.rules.items():
        first = tuple(move or RIGHT for move in rule.moves)
        second = tuple(move or LEFT for move in rule.moves)
        signs = "".join({LEFT: "<", RIGHT: ">"}[move] for move in second)
        half = names((rule.state, second), f"{rule.state} after {signs}")
        between.add(half)
        rules[state, read] = Rule(rule.write, first, half)
        rules[half, blanks] = Rule(blanks, second, rule.state)

    def encode(state: Configuration) -> Configuration:
        tapes = tuple({2 * cell: symbol for cell, symbol in tape.items()} for tape in state.tapes)
        return Configuration(state.state, tapes, tuple(2 * head for head in state.heads))

    def decode(state: Configuration) -> Configuration | None:
        if state.state in between:
            return None
        tapes = tuple({cell // 2: symbol for cell, symbol in tape.items()} for tape in state.tapes)
        return Configuration(state.state, tapes, tuple(head // 2 for head in state.heads))

    return Rewriting("stay-free", machine, _like(machine, rules), encode, decode)


def _like(machine: TuringMachine, rules: dict[tuple[str, tuple[str, ...]], Rule]) -> TuringMachine:
    return TuringMachine(
        rules=rules,
        start_state=machine.start_state,
        blank=machine.blank,
        accept=machine.accept,
        reject=machine.reject,
        name=f"{machine.name}, stay-free",
        alphabet=machine.alphabet,
        states=machine.states,
        tapes=machine.tapes,
    )
