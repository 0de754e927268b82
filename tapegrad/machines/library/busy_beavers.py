"""The machines that run longest for their size before they halt, from an empty tape."""

from dataclasses import dataclass, replace

from tapegrad.machines.formats import bbchallenge
from tapegrad.machines.model import TuringMachine


@dataclass(frozen=True)
class BusyBeaver:
    """A champion, with what is known of its run (the last step into the halting state counts)."""

    text: str
    steps: int
    marks: int
    """Cells that are not blank at the end."""


BUSY_BEAVERS = {
    "2x2": BusyBeaver("1RB1LB_1LA1RZ", 6, 4),
    "3x2": BusyBeaver("1RB1RZ_1LB0RC_1LC1LA", 21, 5),
    "4x2": BusyBeaver("1RB1LB_1LA0LC_1RZ1LD_1RD0RA", 107, 13),
    "5x2": BusyBeaver("1RB1LC_1RC1RB_1RD0LE_1LA1LD_1RZ0LA", 47_176_870, 4_098),
    "2x3": BusyBeaver("1RB2LB1RZ_2LA2RB1LB", 38, 9),
    "2x4": BusyBeaver("1RB2LA1RA1RA_1LB1LA3RB1RZ", 3_932_964, 2_050),
}
"""Champions by number of states and symbols. All are proved to be the last to halt for their size."""


def busy_beaver(size: str) -> TuringMachine:
    """The champion of this size, such as "5x2": 5 states, 2 symbols."""
    machine = bbchallenge.read(BUSY_BEAVERS[size].text.encode()).machine
    assert isinstance(machine, TuringMachine)
    return replace(machine, name=f"busy beaver {size}")
