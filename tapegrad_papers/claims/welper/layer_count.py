"""How deep a function really is: the longest chain of non-linear operations in what JAX traces of it.

Affine maps between them are free, as in a layer `phi(W x + b)`. This counts the network as it runs, and
knows nothing of how the paper groups its operations.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

ALWAYS = {"max", "min", "sqrt", "rsqrt", "integer_pow", "square", "abs", "sign", "gt", "ge", "lt", "le"}
"""One layer, whatever they act on."""
OF_SEVERAL = {"mul", "dot_general", "select_n", "div"}
"""One layer where more than one operand depends on the input; with one they are linear."""


def nonlinear_depth(function: Callable[..., Any], *arguments: Any) -> int:
    """Layers on the longest path from the arguments to any output."""
    traced = jax.make_jaxpr(function)(*arguments)
    inputs = traced.jaxpr.invars[-len(jax.tree.leaves(arguments)) :]
    depths = dict.fromkeys(inputs, 0)
    outputs = _depths(traced.jaxpr, depths)
    return max(depth for depth in outputs if depth is not None)


def _depths(program: Jaxpr, depths: dict[Any, int]) -> list[int | None]:
    """Fills in the depth of every variable that depends on the inputs; None for those that do not."""
    for equation in program.eqns:
        given = [None if isinstance(v, Literal) else depths.get(v) for v in equation.invars]
        inner = _inner(equation.params)
        if inner is not None:
            known = {v: d for v, d in zip(inner.invars, given, strict=True) if d is not None}
            found = _depths(inner, known)
        else:
            found = [_after(equation.primitive.name, given)] * len(equation.outvars)
        depths.update({v: d for v, d in zip(equation.outvars, found, strict=True) if d is not None})
    return [None if isinstance(v, Literal) else depths.get(v) for v in program.outvars]


def _inner(parameters: dict[str, Any]) -> Jaxpr | None:
    for name in ("jaxpr", "call_jaxpr"):
        inner = parameters.get(name)
        if isinstance(inner, ClosedJaxpr):
            return inner.jaxpr
        if isinstance(inner, Jaxpr):
            return inner
    return None


def _after(operation: str, given: list[int | None]) -> int | None:
    dependent = [depth for depth in given if depth is not None]
    if not dependent:
        return None
    if operation == "div" and given[1] is not None:
        return max(dependent) + 1
    more = operation in ALWAYS or (operation in OF_SEVERAL and len(dependent) > 1)
    return max(dependent) + more
