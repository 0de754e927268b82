"""Target `simplex`: gradient descent from configuration to configuration (Welper, section 4.3)."""

from tapegrad.targets.simplex.net import SimplexNet
from tapegrad.targets.simplex.target import TARGET

__all__ = ["TARGET", "SimplexNet"]
