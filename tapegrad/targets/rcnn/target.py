"""The target `rcnn`: what it takes, how it is built, and what it costs."""

from collections.abc import Sequence

import numpy as np

from tapegrad.errors import Refused
from tapegrad.machines.model import GridConfiguration, GridMachine, GridRule
from tapegrad.machines.room import look_ahead_on_grid
from tapegrad.targets.rcnn.build import LARGEST_FILTER
from tapegrad.targets.rcnn.encoding import FORMS
from tapegrad.targets.rcnn.exactness import filter_size
from tapegrad.targets.rcnn.net import RcnnNet
from tapegrad.targets.target import Estimate, Example, Option, Target

MARGIN = 16


def build(machine: GridMachine, *, form: str, margin: int) -> RcnnNet:
    """The filter of a machine, on grids with this many blank cells around the input."""
    estimate(machine, form=form, margin=margin)
    return RcnnNet.of(machine, FORMS[form], margin)


def estimate(machine: GridMachine, *, form: str, margin: int) -> Estimate:
    """Width and weights of the filter, counted from the machine's table alone."""
    if not isinstance(margin, int) or margin < 1:
        raise Refused(f"the margin must be a whole number of at least 1, not {margin!r}")
    encoding = FORMS[form]
    size = filter_size(machine, encoding)
    if size.largest > LARGEST_FILTER:
        ternary = filter_size(machine, "ternary").largest
        raise Refused(
            f"the filter would have {size.largest:,} weights for {len(machine.states):,} states and "
            f"{len(machine.alphabet):,} symbols; at most {LARGEST_FILTER:,} are built",
            advice=f"Use form=paper, which takes {ternary:,}."
            if ternary <= LARGEST_FILTER
            else "Use fewer states.",
        )
    return Estimate(
        width=size.width,
        depth=size.depth,
        trainable=0,
        fixed=size.weights,
        parameters=size.parameters,
        bytes=size.bytes,
        steps=None,
        precision="float64" if encoding == "ternary" else "float32",
        notes=(f"{len(machine.states)} states, {len(machine.rules)} rules; one layer for each step",),
    )


def margin_for(machine: GridMachine, first: GridConfiguration, steps: int) -> dict[str, int]:
    """As many blank cells around the input as the head needs, where the usual ones are too few."""
    _, touched = look_ahead_on_grid(machine, first, steps)
    given, all_cells = np.array([first.head, *first.cells]), np.array(touched)
    beyond = max((given.min(0) - all_cells.min(0)).max(), (all_cells.max(0) - given.max(0)).max())
    return {"margin": int(beyond)} if beyond > MARGIN else {}


def examples() -> Sequence[Example]:
    """A turmite with two states that draws for six steps and halts."""
    rules = {
        ("A", "0"): GridRule("1", "right", "B"),
        ("A", "1"): GridRule("1", "left", "B"),
        ("B", "0"): GridRule("1", "left", "A"),
        ("B", "1"): GridRule("1", "stay", "stop"),
    }
    return [Example(GridMachine(rules, "A", name="turmite"), ((),))]


TARGET = Target(
    name="rcnn",
    summary="a recurrent convolution, one layer for each step; plain SGD memorises the data of a learner",
    paper="Goel, Kakade, Kalai, Zhang, theorem 1 and appendix B",
    takes=GridMachine,
    net=RcnnNet,
    build=build,
    estimate=estimate,
    examples=examples,
    options={
        "form": Option(
            "practical", "practical: one channel for each fact; paper: its ternary numbers", tuple(FORMS)
        ),
        "margin": Option(
            MARGIN, "blank cells on each side of the input; `run` and `show` take more if they must"
        ),
    },
    fitted=margin_for,
    blind=256,
)
