"""The target `rcnn`: a recurrent convolutional network that runs, and learns with, machines on a grid."""

from tapegrad.targets.rcnn.net import RcnnNet, Sheet
from tapegrad.targets.rcnn.target import TARGET

__all__ = ["TARGET", "RcnnNet", "Sheet"]
