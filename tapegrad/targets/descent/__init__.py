"""What `simplex`, `tape` and the extended network share: figure 1 of Welper's paper, trained step by step."""

from tapegrad.targets.descent.loss import ExtendedNetwork, SquaredError, Thresholds, Weights
from tapegrad.targets.descent.net import Descent, DescentNet

__all__ = ["Descent", "DescentNet", "ExtendedNetwork", "SquaredError", "Thresholds", "Weights"]
