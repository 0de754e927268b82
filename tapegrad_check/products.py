"""Products of matrices, whose flags are not believed.

The checker runs with floating-point errors raised: in a genuine net nothing overflows. But a product of
matrices is left to a library that may compute beyond the ends of short vectors, on whatever lies there, and
set flags that mean nothing: a 2 x 5 product of finite numbers was called invalid. So a product is judged by
its result. A sum that overflows, or has a term that is not finite, becomes an infinity or NaN, and stays one.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.folder import require


def times(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """`left @ right`, refused unless every entry is finite. No other file multiplies matrices."""
    with np.errstate(all="ignore"):
        found = left @ right
    require(np.isfinite(found).all(), "a number is out of range: a product of matrices is not finite")
    return found
