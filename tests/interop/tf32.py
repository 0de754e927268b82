"""TF32 without an accelerator: what goes into products of matrices is rounded to 10 bits after the first."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

PRODUCTS = (torch.ops.aten.mm, torch.ops.aten.bmm, torch.ops.aten.addmm)


def rounded(x: torch.Tensor) -> torch.Tensor:
    """To the nearest number with 13 bits less, to even ones in the middle."""
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0xFFF + (bits >> 13 & 1)) & ~0x1FFF).view(torch.float32)


class Tf32(TorchDispatchMode):
    """While it is entered, products are rounded; `count` says how many. (Under `no_grad`: in inference mode
    larger operations are not taken apart before they come here.)"""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket in PRODUCTS:
            self.count += 1
            args = (*args[:-2], *map(rounded, args[-2:]))
        return func(*args, **(kwargs or {}))
