"""Whether the reference engines agree with the sources, at every step, on the device that JAX has here.

On a machine with an accelerator this is the check that nothing depends on TF32 or on the order of sums.
"""

from typing import Any

import jax

import tapegrad as tg
from tapegrad.machines.library import ready
from tapegrad.targets import all_targets


def rows() -> list[dict[str, Any]]:
    """The first example of every target, and softmax attention."""
    cases = [(target.name, example) for target in all_targets() for example in target.examples()]
    found = []
    for name, example in cases:
        net = tg.compile(example.source, name, **example.options)
        found.append(
            _row(f"{name}, {example.source.name}", tg.verify(net, [example.inputs], steps=example.steps))
        )
    softmax = tg.compile(ready("busy-beaver-4x2"), "transformer", steps=128, attention="softmax")
    found.append(_row("transformer with softmax, busy beaver 4x2", tg.verify(softmax, [()])))
    return found


def _row(what: str, report: tg.Report) -> dict[str, Any]:
    agreed = "every step agreed" if report.agreed and report.complete else "DISAGREED"
    return {
        "what": f"{what}: {agreed}, on {jax.default_backend()}",
        "value": report.deviation,
        "unit": "largest deviation",
        "steps": report.steps,
    }


if __name__ == "__main__":
    for row in rows():
        print(row)
