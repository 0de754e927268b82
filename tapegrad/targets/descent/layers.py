"""How deep and how wide a network is, read from what JAX traces of it: nothing here knows how the network was
meant, so that a layer added anywhere is counted."""

from collections import Counter
from collections.abc import Callable
from math import prod
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from numpy.typing import NDArray

from tapegrad.targets.descent.loss import (
    ExtendedNetwork,
    NoPrimary,
    Thresholds,
    TracingLoss,
    Weights,
)

# fmt: off
LINEAR = frozenset((
    "add", "add_any", "broadcast_in_dim", "concatenate", "convert_element_type", "copy", "dynamic_slice",
    "iota", "neg", "pad", "reduce_sum", "reshape", "rev", "slice", "squeeze", "stop_gradient", "sub",
    "transpose",
))
# fmt: on
"""Free, whatever they act on: affine maps between two layers."""

LINEAR_IN_ONE = frozenset(("div", "dot_general", "gather", "mul", "scatter-add", "select_n"))
"""Free where one operand alone depends on what is followed, of a quotient the numerator and of a gathering
what is gathered; otherwise a layer. (To select between constants is affine in the 0 or 1 that selects.)"""


def layers(function: Callable[..., Any], *followed: Any, given: tuple[Any, ...] = ()) -> list[int]:
    """Units in each layer, the first layer first, of `function(*given, *followed)`.

    A layer is one non-linear operation (or several side by side) after as many others on the longest way from
    what is `followed`; affine maps are free, as in a layer `phi(W x + b)`. Any operation that is not known to
    be affine counts. What is `given` is constant. Arguments may be shapes (`jax.ShapeDtypeStruct`).
    """
    traced = jax.make_jaxpr(function)(*given, *followed).jaxpr
    units: Counter[int] = Counter()
    _depths(traced, dict.fromkeys(traced.invars[len(jax.tree.leaves(given)) :], 0), units)
    return [units[depth] for depth in range(1, max(units, default=0) + 1)]


def zeros(*shape: int) -> NDArray[np.float64]:
    """An array that takes no memory, however large: for a trace only its shape matters."""
    return np.broadcast_to(np.float64(0), shape)


def network_layers(machine: TracingLoss, weights: Weights) -> list[int]:
    """Those of the extended network around a loss, without a primary network."""

    def output(machine: TracingLoss, weights: Weights) -> Any:
        network = ExtendedNetwork(machine, NoPrimary(), Thresholds(1.0, 1.0, 2.0))
        return network(np.zeros((len(weights.z), 0)), weights)

    return layers(output, weights, given=(machine,))


def _depths(program: Jaxpr, depths: dict[Any, int], units: Counter[int]) -> list[int | None]:
    """Fills in the depth of every variable that depends on what is followed; None for those that do not."""
    for equation in program.eqns:
        known = [None if isinstance(v, Literal) else depths.get(v) for v in equation.invars]
        inner = _inner(equation)
        if inner is not None:
            own = {v: d for v, d in zip(inner.invars, known, strict=True) if d is not None}
            found = _depths(inner, own, units)
        else:
            found = [_after(equation, known, units)] * len(equation.outvars)
        depths.update({v: d for v, d in zip(equation.outvars, found, strict=True) if d is not None})
    return [None if isinstance(v, Literal) else depths.get(v) for v in program.outvars]


def _inner(equation: JaxprEqn) -> Jaxpr | None:
    """The function that an equation calls, if that is all it does."""
    for name in ("jaxpr", "call_jaxpr"):
        inner = equation.params.get(name)
        if isinstance(inner, ClosedJaxpr | Jaxpr):
            return inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner
    return None


def _after(equation: JaxprEqn, known: list[int | None], units: Counter[int]) -> int | None:
    dependent = [depth for depth in known if depth is not None]
    if not dependent:
        return None
    name = equation.primitive.name
    one = len(dependent) == 1 and not (name in ("div", "gather") and known[0] is None)
    rounds = name == "convert_element_type" and equation.params["new_dtype"].kind != "f"
    if (name in LINEAR and not rounds) or (name in LINEAR_IN_ONE and one):
        return max(dependent)
    depth = max(dependent) + 1
    units[depth] += sum(prod(v.aval.shape) for v in equation.outvars)  # type: ignore[attr-defined]
    return depth
