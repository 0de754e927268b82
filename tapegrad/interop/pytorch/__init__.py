"""Nets as `torch.nn.Module`s (extra `torch`)."""

from tapegrad.interop.pytorch.convert import to_torch
from tapegrad.interop.pytorch.training import ConditionalGradient

__all__ = ["ConditionalGradient", "to_torch"]
