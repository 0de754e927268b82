"""A run as plain data: what the page needs to show it, and nothing else."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Recording:
    """A run of a compiled net beside the plain interpreter of its source.

    `panels` describe what is drawn, on the left (side `source`: the interpreter) and on the right (side
    `network`); frame i of `frames` holds, for each panel, what to draw at one step of the net.
    """

    title: str
    target: str
    summary: str
    paper: str
    passes: list[str]
    parameters: int
    steps: int
    """Steps of the net, including those between two frames."""
    step_name: str
    curve_name: str
    ended: bool
    agreed: bool
    """Whether every decoded state, also between frames, was the interpreter's."""
    notes: list[str]
    panels: list[dict[str, Any]]
    frames: list[dict[str, Any]]
    """Each: `step` of the net, `source_step`, `curve`, `agrees`, and `panels`, one entry for each."""

    def to_json(self) -> dict[str, Any]:
        """The recording as plain JSON."""
        return asdict(self)
