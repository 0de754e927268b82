"""Target `emulator`: any learning algorithm, emulated by plain SGD on a fixed network (Abbe, Sandon)."""

from tapegrad.targets.emulator.net import EmulatorNet
from tapegrad.targets.emulator.target import TARGET

__all__ = ["TARGET", "EmulatorNet"]
