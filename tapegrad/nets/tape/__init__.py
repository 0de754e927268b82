"""Target `tape`: gradient descent that runs a machine, tapes and heads as weights (Welper, section 4.4)."""

from tapegrad.nets.tape.net import TapeNet
from tapegrad.nets.tape.target import TARGET

__all__ = ["TARGET", "TapeNet"]
