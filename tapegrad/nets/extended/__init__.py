"""The extended network (Welper, section 5): ordinary training that runs any algorithm for finding weights."""

from tapegrad.nets.extended.extend import Extended, TrainingRun, extend
from tapegrad.nets.extended.formats import FixedPoint, FloatingPoint
from tapegrad.nets.extended.primaries import MLP, linear, perceptron
from tapegrad.nets.extended.saved import load, save

__all__ = [
    "MLP",
    "Extended",
    "FixedPoint",
    "FloatingPoint",
    "TrainingRun",
    "extend",
    "linear",
    "load",
    "perceptron",
    "save",
]
