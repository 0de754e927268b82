"""Learners: the protocol, the interpreter, ready learners, learners made of learners, and recipes."""

from tapegrad.learners.asked import AskedLearner, Questions, Scores, asked
from tapegrad.learners.bayes import naive_bayes
from tapegrad.learners.functions import FunctionLearner, best_of, doubling
from tapegrad.learners.library import (
    conjunction,
    decision_list,
    dictator,
    majority,
    parity,
    robust_parity,
)
from tapegrad.learners.linear import perceptron, winnow
from tapegrad.learners.model import CircuitLearner, Learner, LearnerState, Response, Samples
from tapegrad.learners.neighbours import nearest
from tapegrad.learners.programs import metaalgorithm
from tapegrad.learners.recipes import (
    DecisionStump,
    DecisionTree,
    NaiveBayes,
    NearestNeighbours,
    Perceptron,
    Recipe,
    Winnow,
)
from tapegrad.learners.tree import decision_stump, decision_tree

__all__ = [
    "AskedLearner",
    "CircuitLearner",
    "DecisionStump",
    "DecisionTree",
    "FunctionLearner",
    "Learner",
    "LearnerState",
    "NaiveBayes",
    "NearestNeighbours",
    "Perceptron",
    "Questions",
    "Recipe",
    "Response",
    "Samples",
    "Scores",
    "Winnow",
    "asked",
    "best_of",
    "conjunction",
    "decision_list",
    "decision_stump",
    "decision_tree",
    "dictator",
    "doubling",
    "majority",
    "metaalgorithm",
    "naive_bayes",
    "nearest",
    "parity",
    "perceptron",
    "robust_parity",
    "winnow",
]
