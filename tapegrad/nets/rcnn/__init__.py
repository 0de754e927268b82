"""The target `rcnn`: a recurrent convolutional network that runs, and learns with, machines on a grid."""

from tapegrad.nets.rcnn.net import RcnnNet, Sheet
from tapegrad.nets.rcnn.target import TARGET

__all__ = ["TARGET", "RcnnNet", "Sheet"]
