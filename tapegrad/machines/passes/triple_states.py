"""Every state three times over, so that no two states lead to each other."""

from tapegrad.lowering.rewriting import Rewriting
from tapegrad.machines.model import Configuration, Rule, TuringMachine


def triple_states(machine: TuringMachine) -> Rewriting:
    """Turns each state q into q.0, q.1, q.2, where the digit counts the steps modulo 3.

    Guarantee: one step for each step, same tapes; if some rule leads from a to b then none leads from b
    to a, nor from a to a: along both the digit would grow by 1 or 2 modulo 3 where it has to stay the
    same. This is condition (20) of Welper's section 4.4.
    """
    after = TuringMachine(
        rules={
            (f"{state}.{r}", read): Rule(rule.write, rule.moves, f"{rule.state}.{(r + 1) % 3}")
            for (state, read), rule in machine.rules.items()
            for r in range(3)
        },
        start_state=f"{machine.start_state}.0",
        blank=machine.blank,
        accept=_tripled(machine.accept),
        reject=_tripled(machine.reject),
        name=f"{machine.name}, states tripled",
        alphabet=machine.alphabet,
        states=tuple(f"{state}.{r}" for state in machine.states for r in range(3)),
        tapes=machine.tapes,
    )

    def encode(state: Configuration) -> Configuration:
        return Configuration(f"{state.state}.0", state.tapes, state.heads)

    def decode(state: Configuration) -> Configuration:
        return Configuration(state.state[:-2], state.tapes, state.heads)

    return Rewriting("states tripled", machine, after, encode, decode)


def _tripled(states: frozenset[str]) -> frozenset[str]:
    return frozenset(f"{state}.{r}" for state in states for r in range(3))
