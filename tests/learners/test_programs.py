"""The metaalgorithm's machine, traced, beside a plain interpreter; and the learner of all its programs."""

import numpy as np
import pytest

from tapegrad.circuits import Bit, UInt, trace
from tapegrad.errors import SourceError
from tapegrad.learners.programs import INSTRUCTIONS, answer, learn, metaalgorithm, programs_up_to
from tapegrad_papers.abbe_sandon.metaalgorithm import LIMIT, PlainMetaalgorithm, run_plainly

N = 3
WORD = UInt(N)


@pytest.mark.parametrize("seed", range(12))
def test_a_traced_program_does_what_the_interpreter_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    program = tuple(rng.choice(INSTRUCTIONS, int(rng.integers(1, 6))).tolist())

    def both(x, label, a):
        taught, said = learn(program, x, label, a, LIMIT), answer(program, x, a, LIMIT)
        return {"ended": taught.in_time, "a": taught.kept, "in_time": said.in_time, "answer": said.answer}

    traced = trace(both, WORD, Bit, WORD)
    for x in range(1 << N):
        for a in range(1 << N):
            for label in (0, 1):
                found = traced.plain(x, bool(label), a)
                learned = run_plainly(program, x, label, a, N, learning=True)
                said = run_plainly(program, x, 1, a, N, learning=False)
                assert found["ended"] == (learned is not None)
                assert learned is None or int(found["a"]) == learned[0]
                assert found["in_time"] == (said is not None)
                assert said is None or int(found["answer"]) == said[1]


def test_every_program_is_there_once_the_shortest_first() -> None:
    assert [len(programs_up_to(bits)) for bits in (0, 2, 3, 6, 9)] == [1, 1, 9, 73, 585]
    assert programs_up_to(6)[0] == ()
    assert len(set(programs_up_to(9))) == 585


def test_the_learner_is_the_plain_metaalgorithm() -> None:
    learner, plain = metaalgorithm(N, 3, 5, 4), PlainMetaalgorithm(N, 3, 5, 4)
    x = np.random.default_rng(1).integers(0, 2, (9, N))
    state = learner.start(x, x[:, 1], 0, False)
    assert learner.first == plain.bits()
    states = list(learner.run(state))
    for t, state in enumerate(states[1:]):
        plain.learn(int(x[t] @ [1, 2, 4]), int(x[t, 1]))
        assert state.memory == plain.bits()
    best = plain.programs[plain.best]
    for row in range(1 << N):
        said = run_plainly(best, row, 1, plain.kept[plain.best], N, learning=False)
        found = learner.respond(state.memory, [row >> i & 1 for i in range(N)], 0, 0)
        assert found.finished
        assert found.answer == (0 if said is None else said[1])


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(SourceError, match="programs of 15 bits"):
        metaalgorithm(3, 15, 4, 4)
    with pytest.raises(SourceError, match="0 to train on"):
        metaalgorithm(3, 6, 0, 4)
