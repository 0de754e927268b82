"""Target `emulator`: any learning algorithm, emulated by plain SGD on a fixed network (Abbe, Sandon)."""

from tapegrad.nets.emulator.net import EmulatorNet
from tapegrad.nets.emulator.target import TARGET

__all__ = ["TARGET", "EmulatorNet"]
