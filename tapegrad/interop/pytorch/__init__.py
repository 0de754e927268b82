"""Nets as `torch.nn.Module`s (extra `torch`)."""

from tapegrad.interop.pytorch.conditional_gradient import ConditionalGradient
from tapegrad.interop.pytorch.convert import to_torch

__all__ = ["ConditionalGradient", "to_torch"]
