"""Random machines and inputs for property tests."""

from itertools import product

from hypothesis import strategies as st

from tapegrad.machines.model import Rule, TuringMachine

SYMBOLS = "_ab#"


@st.composite
def machines(
    draw: st.DrawFn, most_tapes: int = 1, most_symbols: int = 4, most_states: int = 4
) -> TuringMachine:
    """A machine with a full or gappy table, sometimes with accepting and rejecting states."""
    tapes = draw(st.integers(1, most_tapes))
    alphabet = SYMBOLS[: draw(st.integers(1, most_symbols))]
    states = [f"q{number}" for number in range(draw(st.integers(1, most_states)))]
    finals = draw(st.sampled_from([(), ("yes",), ("yes", "no")]))
    rule = st.builds(
        Rule,
        write=st.tuples(*[st.sampled_from(alphabet)] * tapes),
        moves=st.tuples(*[st.sampled_from([-1, 0, 1])] * tapes),
        state=st.sampled_from([*states, *finals]),
    )
    mostly = st.sampled_from([True] * draw(st.integers(1, 8)) + [False])
    rules = {
        (state, read): draw(rule)
        for state, read in product(states, product(alphabet, repeat=tapes))
        if draw(mostly)
    }
    return TuringMachine(
        rules,
        start_state="q0",
        accept=frozenset({"yes"} & set(finals)),
        reject=frozenset({"no"} & set(finals)),
        alphabet=tuple(alphabet),
        tapes=tapes,
    )


@st.composite
def machines_with_words(
    draw: st.DrawFn, most_tapes: int = 1, most_symbols: int = 4, most_states: int = 4
) -> tuple[TuringMachine, list[str]]:
    """A machine and a word for each of its tapes."""
    machine = draw(machines(most_tapes, most_symbols, most_states))
    word = st.text(alphabet="".join(machine.alphabet), max_size=5)
    return machine, [draw(word) for _ in range(machine.tapes)]
