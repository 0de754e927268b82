"""Complete tables on all instances at once, for an accelerator: one gather and one scatter for each step."""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad.search.tasks import OFF, Instances

RUNNING, ANSWERED, FAILED = 0, 1, 2


def evaluate_batched(tables: NDArray[np.int64], states: int, instances: Instances) -> NDArray[np.int64]:
    """Right answers of each table. A run is cut after as many steps as there are configurations of a machine
    that only reads; whoever has not answered by then counts as wrong."""
    cells = instances.grids.shape[1] * instances.grids.shape[2]
    found = _evaluate(
        jnp.asarray(tables, jnp.int32),
        jnp.asarray(instances.grids.reshape(len(instances), cells)),
        jnp.asarray(instances.start, jnp.int32),
        jnp.asarray(instances.answer, jnp.int32),
        jnp.int32(states),
        jnp.asarray([-instances.grids.shape[2], instances.grids.shape[2], -1, 1, 0], jnp.int32),
        jnp.int32(states * cells),
    )
    return np.asarray(found)


@jax.jit
def _evaluate(
    tables: jax.Array,
    grids: jax.Array,
    start: jax.Array,
    answer: jax.Array,
    states: jax.Array,
    shifts: jax.Array,
    steps: jax.Array,
) -> jax.Array:
    machines, instances = len(tables), len(grids)
    m, i = jnp.arange(machines)[:, None], jnp.arange(instances)[None, :]
    grid = jnp.broadcast_to(grids, (machines, *grids.shape))
    position = jnp.broadcast_to(start, (machines, instances))
    state = jnp.zeros((machines, instances), jnp.int32)

    def step(carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        t, grid, position, state, status = carry
        symbol = grid[m, i, position]
        entry = jnp.clip(3 * state + symbol, 0, tables.shape[1] - 1)
        write, move, following = (tables[m, entry, part] for part in range(3))
        lost = (symbol == OFF) | (move < 0)
        runs = (status == RUNNING) & ~lost
        grid = grid.at[m, i, position].set(jnp.where(runs, write, symbol).astype(grid.dtype))
        position = jnp.where(runs, position + shifts[move], position)
        ends = runs & (following >= states)
        inside = (grid[m, i, position] == 1) | (grid[m, i, position] == 2)
        status = jnp.where((status == RUNNING) & lost, FAILED, status)
        status = jnp.where(ends, jnp.where(inside, ANSWERED, FAILED), status)
        return t + 1, grid, position, jnp.where(runs, following, state), status

    def going(carry: tuple[jax.Array, ...]) -> jax.Array:
        return (carry[0] <= steps) & (carry[4] == RUNNING).any()

    first = (jnp.int32(0), grid, position, state, jnp.zeros_like(state))
    _, _, _, state, status = jax.lax.while_loop(going, step, first)
    wanted = states + (answer < 0)
    return ((status == ANSWERED) & (state == wanted[None, :])).sum(axis=1)
