"""Writing machines on the grid in Python, with the same words as machines on tapes."""

from collections.abc import Iterable

from tapegrad.machines.control_flow import ControlFlow
from tapegrad.machines.grid import MOVES, GridMachine, GridRule


class GridBuilder(ControlFlow):
    """A grid machine, written as a program; see `MachineBuilder` for the words.

        b = GridBuilder("box filler", symbols=".#x", blank=".")   # fills the inside of a frame of #
        with b.loop():
            with b.until("#"):
                b.write("x")
                b.move("right")
            b.move("left")
            b.skip("left", "x")
            b.move("down", "right")
            with b.if_("#"):
                b.halt()
        machine = b.machine()

    The grid's blank and the marks of a frame are ordinary symbols. `halt("name")` stops in a state of that
    name.
    """

    directions = tuple(MOVES)

    def __init__(self, name: str, *, symbols: Iterable[str] = (), blank: str = "0") -> None:
        super().__init__(name, blank, symbols, tapes=1)

    def machine(self) -> GridMachine:
        """The machine that runs what has been written so far."""
        table = self._table()
        return GridMachine(
            rules={
                (state, read): GridRule(step.write[0], step.moves[0], step.state)
                for (state, (read,)), step in table.rules.items()
            },
            start_state=table.start_state,
            blank=table.alphabet[0],
            name=self.name,
            alphabet=table.alphabet,
        )
