"""Welper's pieces in PyTorch: functions on the simplex (appendix A), switches (section 5), f_perp (C).

The same formulas as in `tapegrad.targets.simplex.functions` and `tapegrad.targets.extended`, where their derivation
stands; PyTorch differentiates them on its own.
"""

import torch
from torch import Tensor, relu


def corner(x_v: Tensor, mu: float) -> Tensor:
    """Lemma A.1."""
    return relu(1 - (1 - x_v) / mu)


def edge(x_v: Tensor, x_w: Tensor) -> Tensor:
    """Lemma A.2."""
    return relu(2 * (x_v + x_w) - 1) - corner(x_v, 1 / 2) - corner(x_w, 1 / 2)


def directed(x_v: Tensor, x_w: Tensor) -> Tensor:
    """(34), with Lemma A.3 for its last term."""
    return relu(2 * (x_v + x_w) - 1) - corner(x_w, 1 / 2) - relu(2 * x_v - 2 * x_w - 1)


def cutoff(t: Tensor, start: float, end: float) -> Tensor:
    """1 up to `start`, 0 from `end` on."""
    return relu(1 - relu((t - start) / (end - start)))


def label_switch(u: Tensor, z: Tensor, epsilon: float) -> Tensor:
    """s_init of section 5.2."""
    reading = cutoff((z**2).sum(), epsilon / 3, 2 * epsilon / 3)
    return (1 - reading) * u + reading * z


def halt_switch(f: Tensor, u: Tensor, low: float, high: float) -> Tensor:
    """s_net of section 5.3, (27) and (28)."""
    delta = (high - low) / 2
    halted = cutoff((u**2).sum(), 2 * low + delta, 2 * high - delta)
    return halted * f + (1 - halted) * u


def orthogonal(z: Tensor, epsilon: float) -> Tensor:
    """f_perp of appendix C: a unit vector orthogonal to the labels."""
    flat = z.reshape(-1)
    v, w = torch.eye(2, flat.numel(), dtype=flat.dtype)
    length = (flat @ flat).clamp_min(epsilon / 3)
    axis = torch.where(2 * (flat @ v) ** 2 > length, w, v)
    projected = axis - (flat @ axis) / length * flat
    return (projected / (projected @ projected).clamp_min(1 / 4).sqrt()).reshape(z.shape)
