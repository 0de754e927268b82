"""The answer to a question by a solver that shares nothing with us: CaDiCaL, through `python-sat` (extra
`vnn`).

Every wire of the circuit is a variable. A gate is its truth table: for each row, the clause that not all of
its operands are as in the row and the gate otherwise (Tseitin, 1968).

An input of the network is the bit 0 only if it can be less than 3/8, and 1 only if more than 5/8: between
these the guard lets nothing through (`tapegrad._vnn.guard`). So no solution here means that the network is
nowhere above 0; that a solution means 1 somewhere is for the witness to show.
"""

from itertools import product

from tapegrad._vnn.guard import CUTS
from tapegrad._vnn.question import Question, point
from tapegrad.circuits.model import ARITY, Circuit
from tapegrad.errors import Refused

SOLVER = "cadical195"


def solver_answer(question: Question) -> bool:
    """Whether CaDiCaL finds bits within the region that satisfy the circuit."""
    fixed = []
    for place, (low, high) in enumerate(question.region, 1):
        if low >= CUTS[1]:
            fixed.append([place])
        if high <= CUTS[2]:
            fixed.append([-place])
    return _solved([*tseitin(question.circuit), *fixed]) is not None


def answered(circuit: Circuit, clauses: list[list[int]] | None = None) -> Question:
    """The question of a circuit of the user's, answered by the solver; a formula on its clauses, not on the
    circuit that was made of them."""
    found = _solved(tseitin(circuit) if clauses is None else clauses)
    about = {} if clauses is None else {"clauses": len(clauses)}
    if found is None:
        return Question(circuit, None, f"{SOLVER} finds no solution", about)
    true = {literal for literal in found if literal > 0}
    bits = [place in true for place in range(1, len(circuit.inputs) + 1)]
    return Question(circuit, point(bits), f"a solution that {SOLVER} found", about)


def tseitin(circuit: Circuit) -> list[list[int]]:
    """Clauses that hold where every wire has its value and the output is 1; wire w is variable w + 1."""
    clauses = [[int(circuit.output_wires[0]) + 1]]
    rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
    for gate, (kind, left, right) in enumerate(rows, len(circuit.inputs) + 1):
        operands = [left + 1, right + 1][: ARITY[kind]]
        for bits in product((0, 1), repeat=len(operands)):
            a, b = (*bits, 0, 0)[:2]
            differs = [-wire if bit else wire for wire, bit in zip(operands, bits, strict=True)]
            clauses.append([*differs, gate if kind >> (2 * a + b) & 1 else -gate])
    return clauses


def _solved(clauses: list[list[int]]) -> list[int] | None:
    """A solution, if there is one."""
    try:
        from pysat.solvers import Solver
    except ImportError as error:
        raise Refused(
            "confirming answers, and formulas in DIMACS format, need the package python-sat",
            advice="Try: pip install 'tapegrad[vnn]'.",
        ) from error
    with Solver(name=SOLVER, bootstrap_with=clauses) as solver:
        return solver.get_model() if solver.solve() else None
