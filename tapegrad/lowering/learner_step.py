"""What a learner does with one sample, as gates: respond, and learn where the response was wrong."""

from collections.abc import Mapping, Sequence

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
    wrong = build.xor(answer, label)
    after = [build.where(wrong, new, old) for new, old in zip(if_wrong, memory, strict=True)]
    return answer, finished, after


def unguided_step(
    build: CircuitBuilder,
    learner: Learner,
    memory: Sequence[Wire],
    x: Sequence[Wire],
    label: Wire,
    random: Wire,
) -> list[Wire]:
    """The memory after a sample, where every guess is wrong. While the learner has not finished, what it says
    is not the label; so it need not answer, unless it goes on learning once it has finished."""
    circuit, guess = learner.circuit, build.not_(label)
    given = [*memory, *x, random, guess]
    says, knows, *_ = circuit.output_wires.tolist()
    _, finished, *_ = copied(circuit, build, given)
    _, _, *learned = _supposing(circuit, build, given, {says: guess, knows: build.constant(False)})
    answer, _, *if_wrong = _supposing(circuit, build, given, {knows: build.constant(True)})
    wrong = build.xor(answer, label)
    kept = [build.where(wrong, new, old) for new, old in zip(if_wrong, memory, strict=True)]
    return [build.where(finished, old, new) for old, new in zip(kept, learned, strict=True)]


def _supposing(
    circuit: Circuit, build: CircuitBuilder, inputs: Sequence[Wire], known: Mapping[int, Wire]
) -> list[Wire]:
    """The circuit's outputs, supposing that some of its wires have values known from elsewhere. Choices that
    are thereby made, `b ^ (a ^ b)`, become `a`."""
    wires = [known.get(wire, given) for wire, given in enumerate(inputs)]
    sums: dict[Wire, tuple[Wire, Wire]] = {}
    rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
    for own, (kind, *operands) in enumerate(rows, len(wires)):
        a, b, *_ = [*(wires[wire] for wire in operands[: ARITY[kind]]), 0, 0]
        if own in known:
            wires.append(known[own])
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
