"""Target `relu`: Boolean circuits as ReLU networks (Wei, Chen, Ma, section 3)."""

from tapegrad.targets.relu.compact.net import CompactNet
from tapegrad.targets.relu.layered import Activations, LayeredNet
from tapegrad.targets.relu.net import ReluNet
from tapegrad.targets.relu.target import TARGET

__all__ = ["TARGET", "Activations", "CompactNet", "LayeredNet", "ReluNet"]
