"""How learners are shown: their memory in a line, as JSON and as panels of the player."""

from typing import Any

from tapegrad._panels import Cells, CellsFrame, Fields, Panel
from tapegrad.circuits.view import MOST_BITS
from tapegrad.learners.model import Learner, LearnerState
from tapegrad.source import shortened

BITS_IN_A_ROW = 16
WIDEST = 400
"""Bits of the memory that are written out in a line."""


def state_json(learner: Learner, state: LearnerState) -> dict[str, Any]:
    """Memory, samples seen and the last answer."""
    return {"memory": list(state.memory), "samples": state.position, "answer": state.answer}


def state_text(learner: Learner, state: LearnerState) -> str:
    """The same in two lines."""
    memory = shortened("".join(map(str, state.memory)), WIDEST)
    answer = "still learning" if state.answer is None else f"answered {state.answer} to the last"
    return f"after {state.position:,} samples, {answer}\nmemory {memory}"


class LearnerView:
    """Memory of a learner, and the sample it was shown last."""

    def __init__(self, learner: Learner) -> None:
        self.count = min(learner.cells, MOST_BITS)
        self.names = learner.circuit.inputs[: self.count]
        note = "" if learner.cells <= MOST_BITS else f"{MOST_BITS} of {learner.cells:,} bits are shown."
        self.panels: list[Panel] = [
            Fields("Last sample"),
            Cells(
                "Memory",
                "text",
                rows=bit_rows(self.count),
                default=("0",),
                columns=(0, min(BITS_IN_A_ROW, max(1, self.count)) - 1),
                note=note,
                column_name="bit",
                explain=lambda r, c: bit_word(self.names, r, c),
            ),
        ]

    def frame(self, state: LearnerState) -> list[Any]:
        fields = {"sample": f"{state.position:,} of {len(state.samples):,}", "x": "·", "label": "·"}
        if state.position:
            x, y, _, guess = state.samples[state.position - 1]
            fields |= {"x": "".join(map(str, x[:64])), "label": str(y)}
            fields["learner"] = f"guesses {guess}" if state.answer is None else f"answers {state.answer}"
        ones = [(*divmod(i, BITS_IN_A_ROW), "1") for i, bit in enumerate(state.memory[: self.count]) if bit]
        return [fields, CellsFrame(ones, widths=bit_widths(self.count))]


def bit_rows(count: int) -> tuple[str, ...]:
    """Labels of rows of sixteen bits: the number of the first bit in each."""
    return tuple(str(first) for first in range(0, max(1, count), BITS_IN_A_ROW))


def bit_widths(count: int) -> list[int]:
    """The last row may be shorter."""
    return [min(BITS_IN_A_ROW, count - first) for first in range(0, max(1, count), BITS_IN_A_ROW)]


def bit_word(names: tuple[str, ...], row: int, column: int) -> str:
    """A bit of the memory by name."""
    number = row * BITS_IN_A_ROW + column
    return f"Bit {number} of the learner's memory, {names[number]!r}." if number < len(names) else ""
