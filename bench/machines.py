"""Steps a second of the compiled interpreter, beside automata-lib and a plain dict simulator.

All run the 5-state busy-beaver champion from a blank tape; the slow ones take fewer of its first steps."""

import time
from collections.abc import Callable
from itertools import islice

from automata.tm.dtm import DTM

from tapegrad.machines import GridMachine, Rule, TuringMachine
from tapegrad.machines.compiled import run
from tapegrad.machines.formats import read

CHAMPION = "1RB1LC_1RC1RB_1RD0LE_1LA1LD_1RZ0LA"
TURMITE = (
    "{{{1,'N',1},{1,'',0}},{{0,'S',2},{0,'E',4}},{{0,'W',3},{1,'E',1}},"
    "{{1,'W',0},{1,'W',3}},{{0,'W',0},{0,'E',2}}}"
)


def best_rate(steps: Callable[[], int], repeats: int = 3) -> float:
    """The best number of steps a second in a few runs, by the processor time of the one core that they use:
    other work on the machine matters less then."""
    best = 0.0
    for _ in range(repeats):
        begin = time.process_time()
        taken = steps()
        best = max(best, taken / (time.process_time() - begin))
    return best


def compiled(machine: TuringMachine | GridMachine) -> float:
    run(machine, machine.start(), 1000)  # compile first
    return best_rate(lambda: run(machine, machine.start()).steps)


def champion() -> TuringMachine:
    machine = read(CHAMPION).machine
    assert isinstance(machine, TuringMachine)
    return machine


def champion_on_two_tapes() -> TuringMachine:
    """The champion doing the same on both tapes, in as many steps."""
    rules = {
        (state, read * 2): Rule(rule.write * 2, rule.moves * 2, rule.state)
        for (state, read), rule in champion().rules.items()
    }
    return TuringMachine(rules, "A", "0")


def champion_rules() -> dict[tuple[str, str], tuple[str, int, str]]:
    return {
        (state, symbol): (rule.write[0], rule.moves[0], rule.state)
        for (state, (symbol,)), rule in champion().rules.items()
    }


def dict_simulator(max_steps: int) -> int:
    """What everybody writes first: a dict for the rules and a dict for the tape."""
    rules, tape, head, state, steps = champion_rules(), {}, 0, "A", 0
    while steps < max_steps and (rule := rules.get((state, tape.get(head, "0")))) is not None:
        tape[head], move, state = rule
        head += move
        steps += 1
    return steps


def automata_lib(max_steps: int) -> int:
    transitions: dict = {}
    for (state, symbol), (write, move, target) in champion_rules().items():
        transitions.setdefault(state, {})[symbol] = (target, write, "R" if move == 1 else "L")
    machine = DTM(
        states=set("ABCDEZ"),
        input_symbols={"1"},
        tape_symbols={"0", "1"},
        transitions=transitions,
        initial_state="A",
        blank_symbol="0",
        final_states={"Z"},
    )
    return sum(1 for _ in islice(machine.read_input_stepwise(""), max_steps + 1)) - 1


def plain_interpreter(max_steps: int) -> int:
    machine = champion()
    return sum(1 for _ in islice(machine.run(machine.start()), max_steps + 1)) - 1


def rows() -> list[dict]:
    """The benchmark's table."""
    ours = compiled(champion())
    found = [{"what": "5-state champion to its halt, 47,176,870 steps", "value": ours, "unit": "steps/s"}]
    rivals = [
        ("a plain dict simulator", lambda: dict_simulator(2_000_000)),
        ("automata-lib", lambda: automata_lib(20_000)),
        ("our plain interpreter, the oracle", lambda: plain_interpreter(20_000)),
    ]
    for rival, steps in rivals:
        theirs = best_rate(steps)
        row = {"what": "the same machine", "value": theirs, "unit": "steps/s", "rival": rival}
        found.append(row | {"ratio": ours / theirs})
    found.append(
        {"what": "5-state turmite on the grid", "value": compiled(read(TURMITE).machine), "unit": "steps/s"}
    )
    found.append(
        {
            "what": "the champion on two tapes at once",
            "value": compiled(champion_on_two_tapes()),
            "unit": "steps/s",
        }
    )
    return found


if __name__ == "__main__":
    for row in rows():
        ratio = f"  ({row['ratio']:,.0f} times slower than ours)" if "ratio" in row else ""
        print(
            f"{row['what']}, {row.get('rival', 'compiled')}: {row['value'] / 1e6:,.3f} million steps/s{ratio}"
        )
