"""Training by the engine `fast`: layers after the grid has come to rest are left out, which is checked."""

import jax
import jax.numpy as jnp

from tapegrad.errors import InputError
from tapegrad.targets.rcnn.channels import TRACE
from tapegrad.targets.rcnn.encoding import CLOSE
from tapegrad.targets.rcnn.memorising import contents_while_memorising
from tapegrad.targets.rcnn.network import Rcnn

RATE = 1 / 54
SETTLED = 1e-9
"""How much a gradient may change in a layer that counts as passing it on: rounding, nothing more."""


def checked_step(
    part: Rcnn, memory: jax.Array, z: jax.Array, y: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """One step of SGD on the squared loss of a `memorising_part`, by automatic differentiation: the memory
    after it, the output before it, and whether the whole network would have done the same.

    It would if every cell of every layer has a content of the memorising phase, and if in the last layer
    neither the grid changes nor, applied twice, the gradient: then further layers change nothing.
    """
    layer = jax.checkpoint(lambda grid: part.filter(grid))

    def loss(memory: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        first = part.framed(memory, z)
        grid, grids = jax.lax.scan(lambda grid, _: (layer(grid), grid), first, length=part.layers)
        output = part.answer(grid)
        return (y - output) ** 2 / 2, (output, grids)

    (_, (output, grids)), gradient = jax.value_and_grad(loss, has_aux=True)(memory)
    same = _all_memorise(part, grids) & _rests(part, grids[-1])
    return memory - RATE * gradient, output, same


def require_same(same: bool) -> None:
    """Raises unless the whole network would have done the same."""
    if not same:
        raise InputError(
            "the grid is still changing after the message has passed, so layers cannot be left out",
            advice="Take engine='reference'.",
        )


def _all_memorise(part: Rcnn, grids: jax.Array) -> jax.Array:
    """Whether every cell of these grids has one of the contents that occur while memorising."""
    known = part.encoding.table()[contents_while_memorising(part.encoding.cells)]
    if part.encoding.name == "channels":
        grids = grids.at[:, TRACE].set(0)  # no part of a content
    away = jnp.stack([jnp.abs(grids - one[:, None, None]).max(axis=1) for one in known])
    return (away.min(axis=0) <= CLOSE).all()


def _rests(part: Rcnn, grid: jax.Array) -> jax.Array:
    """Whether a grid is a fixed point of the filter, and its gradient one of the filter's derivative."""
    after, back = jax.vjp(part.filter, grid)
    (once,) = back(jax.grad(part.answer)(grid))
    (twice,) = back(once)
    moved = jnp.abs(part.main(twice - once)).max()
    return (jnp.abs(after - grid).max() <= SETTLED) & (moved <= SETTLED * jnp.abs(once).max())
