"""Target `simplex`: gradient descent from configuration to configuration (Welper, section 4.3)."""

from tapegrad.nets.simplex.net import SimplexNet
from tapegrad.nets.simplex.target import TARGET

__all__ = ["TARGET", "SimplexNet"]
