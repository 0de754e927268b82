"""Learning algorithms as machines on the grid, for the target `rcnn`, whatever the number of samples."""

from tapegrad.grid_learners.conjunction import conjunction
from tapegrad.grid_learners.from_learner import grid_learner, random_bits
from tapegrad.grid_learners.from_machine import from_machine
from tapegrad.grid_learners.layout import GridLearner, start, xor_form
from tapegrad.grid_learners.majority import majority
from tapegrad.grid_learners.nearest import nearest_neighbour
from tapegrad.grid_learners.parity import parity
from tapegrad.grid_learners.single_coordinate import single_coordinate

GRID_LEARNERS = {
    "majority": majority,
    "single-coordinate": single_coordinate,
    "conjunction": conjunction,
    "nearest-neighbour": nearest_neighbour,
    "parity": parity,
}

__all__ = [
    "GRID_LEARNERS",
    "GridLearner",
    "conjunction",
    "from_machine",
    "grid_learner",
    "majority",
    "nearest_neighbour",
    "parity",
    "random_bits",
    "single_coordinate",
    "start",
    "xor_form",
]
