"""Decoder steps a second of both engines of the transformer, as T grows; each step is a machine step.

The machine is the 5-state busy-beaver champion, which runs far longer than any T here. Processor time of one
core, best of a few runs; the reference engine scans all earlier steps, so it takes fewer of them.
"""

import time
from collections.abc import Callable

import tapegrad as tg
from tapegrad.machines.library import ready
from tapegrad.nets.transformer import TransformerNet

FAST = (8, 10, 12, 14, 16, 18, 20)
REFERENCE = (8, 10, 12)
REFERENCE_STEPS = 256


def steps_a_second(net: TransformerNet, engine: str, steps: int) -> float:
    """The rate over the first `steps` steps, after a run that compiles."""
    machine = ready("busy-beaver-5x2")
    net.advance(net.start(machine.start()), 2, engine)
    return max(_rate(lambda: net.advance(net.start(machine.start()), steps, engine), steps) for _ in range(2))


def _rate(run: Callable[[], object], steps: int) -> float:
    began = time.process_time()
    run()
    return steps / (time.process_time() - began)


def rows() -> list[dict]:
    """Both engines, every T."""
    result = []
    for exponent in FAST:
        net = tg.compile(ready("busy-beaver-5x2"), "transformer", steps=1 << exponent).net
        assert isinstance(net, TransformerNet)
        fast = steps_a_second(net, "fast", 1 << exponent)
        row = {"what": f"fast, T = 2^{exponent}", "value": fast, "unit": "steps/s"}
        if exponent in REFERENCE:
            steps = min(REFERENCE_STEPS, 1 << exponent)
            slow = steps_a_second(net, "reference", steps)
            result.append(
                {"what": f"reference, T = 2^{exponent}, {steps} steps", "value": slow, "unit": "steps/s"}
            )
            row |= {"rival": "reference", "ratio": fast / slow}
        result.append(row)
    return result


if __name__ == "__main__":
    for row in rows():
        print(row)
