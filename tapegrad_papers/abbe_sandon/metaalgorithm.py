"""Corollary 1: one network that holds every program of at most k bits, finds the one that learns, and answers
with it; beside a plain interpreter of the same machine."""

from collections.abc import Callable

import numpy as np

from tapegrad.learners.programs import Program, metaalgorithm, programs_up_to
from tapegrad_papers.abbe_sandon import PAPER
from tapegrad_papers.abbe_sandon.cross_predictability import all_bits
from tapegrad_papers.abbe_sandon.rivals import practical
from tapegrad_papers.ledger import Outcome, holds_in_part

LIMIT = 8


def run_plainly(
    program: Program, x: int, label: int, a: int, n: int, learning: bool
) -> tuple[int, int] | None:
    """The machine of `tapegrad.learners.programs` with Python integers, instruction by instruction: A and the
    answer, or None if it was interrupted."""
    ones, v, place = (1 << n) - 1, x, 0
    for _ in range(LIMIT):
        if place >= len(program):
            break
        now, place = program[place], place + 1
        if now == "NOT":
            v ^= ones
        elif now == "LABEL":
            v = v if label else v ^ ones
        elif now == "WHEN":
            place += not label
        elif now == "NARROW":
            a = a & v if learning else a
        elif now == "MASK":
            v &= a
        elif now == "ALL":
            v = ones if v & a == a else 0
        elif now == "SHIFT":
            v = v << 1 & ones
        elif v:  # AGAIN
            place = 0
    return (a, int(v & a != 0)) if place >= len(program) else None


class PlainMetaalgorithm:
    """Learning-Metaalgorithm as the paper lists it, with every program run by the interpreter."""

    def __init__(self, n: int, bits: int, train: int, compare: int) -> None:
        self.n, self.train, self.compare, self.seen = n, train, compare, 0
        self.programs = programs_up_to(bits)
        self.kept = [(1 << n) - 1] * len(self.programs)
        self.errors = [0] * len(self.programs)
        self.interrupted = 0

    def learn(self, x: int, y: int) -> None:
        """One more sample."""
        for k, (program, a) in enumerate(zip(self.programs, self.kept, strict=True)):
            if self.seen < self.train:
                ended = run_plainly(program, x, y, a, self.n, True)
                self.kept[k] = a if ended is None else ended[0]
            else:
                ended = run_plainly(program, x, 1, a, self.n, False)
                self.errors[k] += ended is None or ended[1] != y
            self.interrupted += ended is None
        self.seen += 1

    @property
    def best(self) -> int:
        """The program with the fewest errors, the first of several."""
        return self.errors.index(min(self.errors))

    def bits(self) -> tuple[int, ...]:
        """All of its memory as bits, in the learner's order."""
        parts = [(a, self.n) for a in self.kept]
        parts += [(count, self.compare.bit_length()) for count in self.errors]
        parts.append((self.seen, (self.train + self.compare).bit_length()))
        return tuple(value >> place & 1 for value, width in parts for place in range(width))


TASKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "one bit": lambda x: x[:, 1],
    "the opposite of a bit": lambda x: 1 - x[:, 2],
    "a conjunction": lambda x: x[:, 0] & x[:, 2],
}


@PAPER.claim("Corollary 1", "One net learns whatever any short program learns: the metaalgorithm")
def corollary_1(long: bool) -> Outcome:
    n, bits, train, compare, most = (3, 12, 16, 16, 150) if long else (3, 9, 16, 16, 150)
    learner = metaalgorithm(n, bits, train, compare, LIMIT)
    net, every = practical(learner), all_bits(n)
    x = np.random.default_rng(1).integers(0, 2, (most, n))
    agreed, accuracy, winners, interrupted, used = True, {}, {}, 0, 0
    for name, concept in TASKS.items():
        first = learner.start(x, concept(x), 3)
        carry, plain, y = net.start(first), PlainMetaalgorithm(n, bits, train, compare), concept(x)
        for t in range(most):
            finished = plain.seen == train + compare
            carry = net.advance(carry, 1, "fast")
            if not finished and first.samples.guess[t] != y[t]:
                plain.learn(int(x[t] @ (1 << np.arange(n))), int(y[t]))
            agreed = agreed and net.decode(carry).memory == plain.bits()
            if finished:
                used = max(used, t)
                break
        accuracy[name] = float(np.mean((net.outputs(carry, every) > 0) == concept(every).astype(bool)))
        winners[name] = " ".join(plain.programs[plain.best])
        interrupted += plain.interrupted
    fewer = 6
    shorter = metaalgorithm(n, fewer, train, compare, LIMIT)
    small, missed = practical(shorter), []
    for concept in TASKS.values():
        carry = small.advance(small.start(shorter.start(x, concept(x), 3)), most, "fast")
        missed.append(float(np.mean((small.outputs(carry, every) > 0) == concept(every).astype(bool))))
    checks = {
        "the memory is that of the metaalgorithm, run by a plain interpreter, after every step": agreed,
        "it learns each function: right on all inputs": set(accuracy.values()) == {1.0},
        "by a different program each time": len(set(winners.values())) == len(TASKS),
        "some programs do not end in time; they skip the sample, or are wrong": interrupted > 0,
        f"programs of at most {fewer} bits are not enough for all of them": min(missed) < 1,
    }
    programs = ", ".join(f"{name} by {text}" for name, text in winners.items())
    return holds_in_part(
        checks,
        stated="a net that learns every efficiently learnable distribution, for the right c",
        measured=f"{len(programs_up_to(bits)):,} programs of at most {bits} bits in one network of "
        f"{net.graph.edges:,} weights, {learner.cells:,} bits of memory: learned {programs}; test accuracies "
        f"{list(accuracy.values())} from at most {used} samples; with {fewer} bits {missed}; {interrupted:,} "
        "runs interrupted",
        part=f"Every program of at most {bits} bits of one small machine, in the place of log log n bits of "
        "a universal one, and three functions that they can learn.",
        accuracy=list(accuracy.values()),
    )
