"""What `simplex`, `tape` and the extended network share: figure 1 of Welper's paper, trained step by step."""

from tapegrad.targets.descent.net import Descent, DescentNet
from tapegrad.targets.descent.network import ExtendedNetwork, SquaredError, Thresholds, Weights

__all__ = ["Descent", "DescentNet", "ExtendedNetwork", "SquaredError", "Thresholds", "Weights"]
