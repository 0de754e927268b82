"""The extended network (Welper, section 5): ordinary training that runs any algorithm for finding weights."""

from tapegrad.targets.extended.batches import Batched, perceptron_on_batches
from tapegrad.targets.extended.build import Procedure
from tapegrad.targets.extended.formats import FixedPoint, FloatingPoint
from tapegrad.targets.extended.net import Extended, Training, TrainingRun, extend
from tapegrad.targets.extended.primary import MLP, linear, perceptron
from tapegrad.targets.extended.rosenblatt import perceptron_rule
from tapegrad.targets.extended.saved import load, save

__all__ = [
    "MLP",
    "Batched",
    "Extended",
    "FixedPoint",
    "FloatingPoint",
    "Procedure",
    "Training",
    "TrainingRun",
    "extend",
    "linear",
    "load",
    "perceptron",
    "perceptron_on_batches",
    "perceptron_rule",
    "save",
]
