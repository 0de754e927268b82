"""What a learner does with one sample, as gates: respond, and learn where the response was wrong."""

from collections.abc import Sequence

from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.circuits.passes import copied
from tapegrad.learners.model import Learner


def learner_step(
    build: CircuitBuilder,
    learner: Learner,
    memory: Sequence[Wire],
    x: Sequence[Wire],
    label: Wire,
    random: Wire,
    guess: Wire,
) -> tuple[Wire, Wire, list[Wire]]:
    """The answer, whether the learner had finished, and its memory afterwards."""
    answer, finished, *if_wrong = copied(learner.circuit, build, [*memory, *x, random, guess])
    wrong = build.xor(answer, label)
    after = [build.where(wrong, new, old) for new, old in zip(if_wrong, memory, strict=True)]
    return answer, finished, after
