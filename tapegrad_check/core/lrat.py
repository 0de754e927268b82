"""The checker of a solver's proofs: clauses, and for each the earlier ones that it follows from.

In a proof in the format LRAT the clauses of the formula are numbered from 1. Each line has the number of a
new clause, its literals, 0, and the numbers of clauses that prove it, 0. The new clause is assumed to be
false. Each clause that is named then has at most one literal that is not false, which has to be true; one
that has none is the contradiction. So every new clause follows from the formula, and where the empty one
does, the formula has no solution (Cruz-Filipe, Heule, Hunt, Kaufmann and Schneider-Kamp, 2017). Steps that
only keep solutions without following (RAT) are refused.
"""

from collections.abc import Sequence

Clause = Sequence[int]


def refutes(proof: bytes, formula: Sequence[Clause]) -> bool:
    """Whether this is a proof that no assignment makes all clauses true; what cannot be read is none."""
    clauses: dict[int, Clause] = dict(enumerate(formula, 1))
    try:
        for line in proof.splitlines():
            number, *rest = line.split()
            if rest[0] == b"d":
                for old in rest[1:-1]:
                    clauses.pop(int(old), None)
                continue
            numbers = list(map(int, rest))
            end = numbers.index(0)
            clause, reasons = numbers[:end], numbers[end + 1 : -1]
            if not _follows(clause, reasons, clauses):
                return False
            if not clause:
                return True
            clauses[int(number)] = clause
    except (ValueError, KeyError, IndexError):
        return False
    return False


def _follows(clause: Clause, reasons: Sequence[int], clauses: dict[int, Clause]) -> bool:
    false = set(clause)
    for reason in reasons:
        left = [literal for literal in clauses[reason] if literal not in false]
        if not left:
            return True
        if len(left) > 1:
            return False
        false.add(-left[0])
    return False
