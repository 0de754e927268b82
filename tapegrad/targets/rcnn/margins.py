"""The claims that can be checked from a filter's arrays: how far every threshold is from being crossed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.targets.rcnn.channels import ChannelFilter
from tapegrad.targets.rcnn.encoding import Encoding, Filter
from tapegrad.targets.rcnn.ternary import TernaryFilter


def claims(filter: Filter, encoding: Encoding) -> dict[str, Any]:
    """The least distance of a meaningful value from a kink, and the largest sum of magnitudes in a row, which
    bounds rounding; both exact to check, so that no gain is taken on trust."""
    table = encoding.table()[encoding.cells.possible]
    if isinstance(filter, ChannelFilter):
        return {"encoding": "channels", "integers": True, "largest_sum": largest_sum(filter)}
    return {
        "encoding": "ternary",
        "least_gap": float(np.diff(np.unique(table[:, 0])).min()),
        "kink_margin": kink_margin(filter, table[:, 0]),
        "bump_rounding": bump_rounding(filter, table[:, 0]),
    }


def largest_sum(filter: ChannelFilter) -> int:
    """Bound on every pre-activation: channels are 0 or 1."""
    rows = np.abs(np.asarray(filter.kernel)).sum(axis=(1, 2, 3)) + np.abs(np.asarray(filter.bias))
    return int(rows.max())


def kink_margin(filter: TernaryFilter, values: NDArray[np.float64]) -> float:
    """Least distance of a cell's value from a kink of the first layer."""
    ordered, kinks = np.sort(values), -filter.maps[0].bias
    above = np.clip(np.searchsorted(ordered, kinks), 1, len(ordered) - 1)
    return float(np.minimum(np.abs(kinks - ordered[above - 1]), np.abs(ordered[above] - kinks)).min())


def bump_rounding(filter: TernaryFilter, values: NDArray[np.float64]) -> float:
    """Bound on the rounding error of a question's answer: for each term one rounding in the difference, the
    product and the sum, of numbers no larger than slope times range."""
    span = float(values.max() - values.min())
    second = filter.maps[1]
    largest = np.bincount(second.rows, np.abs(second.values) * span, len(second.bias)) + np.abs(second.bias)
    terms = np.bincount(second.rows, minlength=len(second.bias)) + 2
    return float((np.finfo(np.float64).eps * terms * largest).max())
