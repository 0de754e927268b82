"""Learners: the protocol, the interpreter, ready learners, and learners made of learners."""

from tapegrad.learners.compose import best_of, doubling
from tapegrad.learners.decision_list import decision_list
from tapegrad.learners.dictator import dictator
from tapegrad.learners.functions import FunctionLearner
from tapegrad.learners.model import CircuitLearner, Learner, LearnerState, Response
from tapegrad.learners.nearest import nearest
from tapegrad.learners.parity import parity
from tapegrad.learners.perceptron import perceptron
from tapegrad.learners.robust_parity import robust_parity
from tapegrad.learners.samples import Samples
from tapegrad.learners.simple import conjunction, majority

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
    "nearest",
    "parity",
    "perceptron",
    "robust_parity",
]
