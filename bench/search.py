"""Search: candidates per second, and how many machines there are.

python -m bench.search
"""

import time
from typing import Any

import jax
import numpy as np

from tapegrad.search import Family, SearchOptions, canonical_machines, run
from tapegrad.search.batched import evaluate_batched
from tapegrad.search.running import evaluate
from tapegrad.search.tasks import TASKS, draw_instances

Row = dict[str, Any]
HARD = {"single": 2, "pairs": 1, "mirrored": True, "allowed_errors": 2}


def rows() -> list[Row]:
    """All of it, in a minute."""
    return [*growth(), *speed(), *batches()]


def growth() -> list[Row]:
    """Canonical tables of machines that only read, exactly."""
    return [
        {"what": f"canonical machines, s = {s}", "value": canonical_machines(Family(s)), "unit": "tables"}
        for s in range(1, 6)
    ]


def speed() -> list[Row]:
    """The whole mirrored family of four states, on one thread and on all cores."""
    run("single-coordinate", SearchOptions(**HARD))
    one = _search(1)
    found = [{"what": "enumeration, 1 thread", "value": one, "unit": "candidates/s"}]
    two = _search(None)
    found.append({"what": "enumeration, all cores", "value": two, "unit": "candidates/s"})
    return [*found[:1], found[1] | {"rival": "1 thread", "rival_value": one, "ratio": two / one}]


def _search(workers: int | None) -> float:
    began = time.perf_counter()
    result = run("single-coordinate", SearchOptions(**HARD, workers=workers, validation=100))
    return result.candidates / (time.perf_counter() - began)


def batches() -> list[Row]:
    """Complete random tables on 24 instances: batched by JAX (on the GPU where there is one) and compiled."""
    rng = np.random.default_rng(0)
    states, count = 4, 4096
    shape = (count, 3 * states)
    symbols = np.broadcast_to(np.tile(np.arange(3), states), shape)
    tables = np.stack([symbols, rng.integers(0, 4, shape), rng.integers(0, states + 2, shape)], axis=-1)
    instances = draw_instances(TASKS["single-coordinate"], 24, 0)
    evaluate_batched(tables, states, instances)
    began = time.perf_counter()
    evaluate_batched(tables, states, instances)
    batched = count / (time.perf_counter() - began)
    arguments = instances.grids, instances.start, instances.answer
    evaluate(tables[:1], states, *arguments)
    began = time.perf_counter()
    evaluate(tables, states, *arguments)
    compiled = count / (time.perf_counter() - began)
    name = f"whole tables, batched on {jax.devices()[0].platform}"
    rival = {"rival": "compiled, 1 thread", "rival_value": compiled, "ratio": batched / compiled}
    return [{"what": name, "value": batched, "unit": "tables/s"} | rival]


if __name__ == "__main__":
    for row in rows():
        beside = (
            f"   {row['rival']}: {row['rival_value']:,.4g} ({row['ratio']:.3g})" if "rival" in row else ""
        )
        print(f"{row['what']:<40} {row['value']:>20,.6g} {row['unit']:<14}{beside}")
