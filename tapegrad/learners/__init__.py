"""Learners: the protocol, the interpreter, ready learners, and learners made of learners."""

from tapegrad.learners.functions import FunctionLearner, best_of, doubling
from tapegrad.learners.library import (
    conjunction,
    decision_list,
    dictator,
    majority,
    nearest,
    parity,
    perceptron,
    robust_parity,
)
from tapegrad.learners.model import CircuitLearner, Learner, LearnerState, Response, Samples
from tapegrad.learners.programs import metaalgorithm

__all__ = [
    "CircuitLearner",
    "FunctionLearner",
    "Learner",
    "LearnerState",
    "Response",
    "Samples",
    "best_of",
    "conjunction",
    "decision_list",
    "dictator",
    "doubling",
    "majority",
    "metaalgorithm",
    "nearest",
    "parity",
    "perceptron",
    "robust_parity",
]
