"""From the saved source to what the net must be of: every pass proved, in the order in which they are named.

A pass has a name, and `PASSES` a function for each name. The function takes the checker's own model of what
went in and gives the model of what came out, which it derives anew, or takes from the folder once it has
shown that the one does what the other does. So what the last pass gives is bound to the source, and the
checker of a target binds the net to that.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tapegrad_check.folder import Folder, NotProved, require
from tapegrad_check.passes import circuits, clocked, drawings, machines, plans, programs, tables
from tapegrad_check.passes import rasp as rasp_circuit
from tapegrad_check.passes.step import IN_THE_NET, Step
from tapegrad_check.sources import Model, digest, lowered_of, source_of

Pass = Callable[[Model, Step], Model]
"""Proves one pass: `CheckError` if it does not hold, `NotProved` if that cannot be told."""

PASSES: dict[str, Pass] = {
    **circuits.PASSES,
    **clocked.PASSES,
    **drawings.PASSES,
    **machines.PASSES,
    **plans.PASSES,
    **programs.PASSES,
    **rasp_circuit.PASSES,
    **tables.PASSES,
}


@dataclass(frozen=True)
class Bound:
    """What the net must be of; None with a reason where the way from the source to it is not proved."""

    source: Model | None
    reason: str
    statements: tuple[str, ...]
    tested: int | None = None
    """Where a pass was not proved for all inputs, on how many it was tested."""


def bound_source(folder: Folder, *, proves: bool = True) -> Bound:
    """Follows the passes from the saved source. What they give must be what is saved as the lowered source,
    and have the sums under which the folder names them. Who wants to know only that everything is in bounds
    leaves out long proofs."""
    statements: list[str] = []
    tested: list[int] = []
    try:
        current = source_of(folder)
        for number, name in enumerate(folder.pass_names):
            if name not in PASSES:
                raise NotProved(f"the checker does not know the pass {name!r}")
            step = Step(folder, number, name, proves=proves)
            current = PASSES[name](current, step)
            if name not in IN_THE_NET:
                _named(current, step)
            statements += step.statements
            tested += step.tested
        if "lowered" in folder.config:
            same = digest(lowered_of(folder)) == digest(current)
            require(same, "the lowered source is not the one that the passes give")
    except NotProved as reason:
        return Bound(None, str(reason), ())
    return Bound(current, "", tuple(statements), min(tested, default=None))


def _named(model: Model, step: Step) -> None:
    require(step.sha256 == digest(model), f"the pass {step.name!r} gives something else than saved")
