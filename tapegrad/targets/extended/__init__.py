"""The extended network (Welper, section 5): ordinary training that runs any algorithm for finding weights."""

from tapegrad.targets.extended.formats import FixedPoint, FloatingPoint
from tapegrad.targets.extended.net import Extended, TrainingRun, extend
from tapegrad.targets.extended.primary import MLP, linear, perceptron
from tapegrad.targets.extended.saved import load, save

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
