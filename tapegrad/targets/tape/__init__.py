"""Target `tape`: gradient descent that runs a machine, tapes and heads as weights (Welper, section 4.4)."""

from tapegrad.targets.tape.net import TapeNet
from tapegrad.targets.tape.target import TARGET

__all__ = ["TARGET", "TapeNet"]
