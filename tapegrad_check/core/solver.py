"""Questions to CaDiCaL, whose proofs are checked. Solutions are not: they only end the search for a proof."""

import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from tapegrad_check.core.lrat import Clause, refutes
from tapegrad_check.folder import CheckError, NotProved

SOLVER = "python-sat"


class Answer(NamedTuple):
    """Refuted: no solution, and the proof was checked. Else a solution, or None where it was given up."""

    refuted: bool
    solution: Sequence[int] | None = None


def solve(formula: Sequence[Clause], conflicts: int) -> Answer:
    """Whether all clauses can be true at once, given up after so many conflicts. No clause may have a literal
    twice, or with its negation."""
    # A clause of one literal has consequences at once, which are numbered before the next clause. So only the
    # last has one literal: that a variable is false, which is the second literal of the others.
    spare = max((abs(literal) for clause in formula for literal in clause), default=0) + 1
    formula = [clause if len(clause) > 1 else [*clause, spare] for clause in formula] + [[-spare]]
    try:
        import pysolvers
        from pysat.solvers import Cadical195
    except ImportError as error:
        raise NotProved(f"this needs a solver, which is not installed: pip install {SOLVER}") from error
    with Cadical195() as solver, tempfile.TemporaryFile() as file:
        solver.configure({"lrat": 1, "binary": 0})
        stream = pysolvers.cadical195_tracepr(solver.cadical, file)
        try:
            for clause in formula:
                pysolvers.cadical195_add_cl(solver.cadical, clause)
            solver.conf_budget(conflicts)
            found = solver.solve_limited()
            solution = solver.get_model() if found else None
        finally:
            pysolvers.flushpr(stream)
            file.seek(0)
            proof = file.read()
    if found is not False:
        return Answer(False, solution)
    if not refutes(proof, formula):
        raise CheckError("the solver gave a proof that is none", advice="Report it, and install it again.")
    return Answer(True)
