"""What a learner does with one sample, as gates: respond, and learn where the response was wrong."""

from collections.abc import Sequence

from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.circuits.model import ARITY, Circuit, Gate
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
    return answer, finished, _where_wrong(build, answer, label, if_wrong, memory)


def _where_wrong(
    build: CircuitBuilder, answer: Wire, label: Wire, new: Sequence[Wire], old: Sequence[Wire]
) -> list[Wire]:
    wrong = build.xor(answer, label)
    if build.known(wrong) is True:
        return list(new)
    return [build.where(wrong, after, before) for after, before in zip(new, old, strict=True)]


def unguided_step(
    build: CircuitBuilder,
    learner: Learner,
    memory: Sequence[Wire],
    x: Sequence[Wire],
    label: Wire,
    random: Wire,
) -> list[Wire]:
    """The memory after a sample that comes with a wrong guess, case by case. A learner that has not finished
    says the guess, and so need not answer; then there is less to compute if it never changes its memory once
    it has finished."""
    given = [*memory, *x, random, build.not_(label)]
    _, finished, *_ = copied(learner.circuit, build, given)
    cases: list[list[Wire]] = []
    for case in (True, False):
        answer, _, *if_wrong = _supposing(learner.circuit, build, given, build.constant(case))
        cases.append(_where_wrong(build, answer, label, if_wrong, memory))
    return [build.where(finished, one, other) for one, other in zip(*cases, strict=True)]


def _supposing(circuit: Circuit, build: CircuitBuilder, inputs: Sequence[Wire], finished: Wire) -> list[Wire]:
    """The learner's outputs in the case that it has finished, or that it has not. A choice that is made
    thereby, `b ^ (a ^ b)`, becomes `a`."""
    says_so = int(circuit.output_wires[1])
    wires = [finished if wire == says_so else given for wire, given in enumerate(inputs)]
    sums: dict[Wire, tuple[Wire, Wire]] = {}
    rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
    for own, (kind, *operands) in enumerate(rows, len(wires)):
        a, b, *_ = [*(wires[wire] for wire in operands[: ARITY[kind]]), 0, 0]
        if own == says_so:
            wires.append(finished)
        elif kind == Gate.XOR and a in sums.get(b, ()):
            wires.append(_other(sums[b], a))
        elif kind == Gate.XOR and b in sums.get(a, ()):
            wires.append(_other(sums[a], b))
        else:
            wires.append(build.gate(Gate(kind), a, b))
            if kind == Gate.XOR:
                sums[wires[-1]] = a, b
    return [wires[wire] for wire in circuit.output_wires.tolist()]


def _other(pair: tuple[Wire, Wire], one: Wire) -> Wire:
    return pair[1] if pair[0] == one else pair[0]
