"""The optimiser for parameters on a simplex, which plain SGD would leave (Welper's (3); Frank and Wolfe)."""

from collections.abc import Iterable

import torch
from torch import Tensor


class ConditionalGradient(torch.optim.Optimizer):
    """A unit step: each parameter, a point of a simplex, moves to the vertex of steepest descent, and stays
    where no vertex is strictly better. This is not SGD; `torch.optim.SGD` trains everything else."""

    def __init__(self, params: Iterable[Tensor]) -> None:
        super().__init__(params, {})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for point in group["params"]:
                slope = point.grad
                if slope is None:
                    continue
                best = slope.argmin()
                if slope[best] < slope @ point:
                    point.zero_()
                    point[best] = 1.0
