"""Both engines of a machine with memories side by side."""

from dataclasses import replace

import numpy as np

from tapegrad.programs.model import Program
from tapegrad.targets.transformer.memory_net import MemoryNet


def same_outputs(net: MemoryNet, program: Program, input: bytes, steps: int) -> int:
    """Steps until the end, with every output and every decoded state compared."""
    slow = fast = net.start(program.start(input))
    fast = replace(fast, memories={name: words.copy() for name, words in fast.memories.items()})
    for step in range(steps):
        if net.done(slow):
            return step
        slow, fast = net.advance(slow, 1), net.advance(fast, 1, "fast")
        assert np.array_equal(slow.output, fast.output), step
        assert slow.steps == fast.steps == step + 1
        assert net.decode(slow) == net.decode(fast)
    return steps
