"""Rewriting passes: each a function from a machine to a `Rewriting`, with a stated guarantee."""

from tapegrad.machines.passes.binary_tracks import binary_tracks
from tapegrad.machines.passes.one_tape import one_tape
from tapegrad.machines.passes.one_way import one_way
from tapegrad.machines.passes.stay_free import stay_free
from tapegrad.machines.passes.to_grid import to_grid
from tapegrad.machines.passes.total_table import total_table
from tapegrad.machines.passes.triple_states import triple_states

__all__ = [
    "binary_tracks",
    "one_tape",
    "one_way",
    "stay_free",
    "to_grid",
    "total_table",
    "triple_states",
]
