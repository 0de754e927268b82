"""Runs to begin with: one for each idea, then an example of each format, then everything that is ready."""

import json
from dataclasses import dataclass

from tapegrad._sources import all_kinds, ready_names
from tapegrad.show.recorder import EXAMPLE

PYTHON = """\
from tapegrad import UInt, where


def clamped_sum(a: UInt(4), b: UInt(4)):
    return where(a + b < a, 15, a + b)
"""


@dataclass(frozen=True)
class Entry:
    """What the form of the studio is filled with."""

    group: str
    title: str
    source: str
    target: str
    input: str = ""
    options: str = ""

    def request(self) -> bytes:
        """What the page asks for when the form is filled with this."""
        asked = {"source": self.source, "target": self.target, "input": self.input, "options": self.options}
        return json.dumps(asked).encode()


IDEAS = "One for each idea"
BEGIN = (
    Entry(IDEAS, "a busy beaver, run by gradient descent", "1RB1LB_1LA0LC_1RZ1LD_1RD0RA", "tape"),
    Entry(IDEAS, "a loss that falls step by step", "increment", "simplex", "101", "longest=3"),
    Entry(IDEAS, "200 + 55 by a ReLU network", "adder8", "relu", "a=200 b=55"),
    Entry(
        IDEAS, "a transformer that remembers by attention", "palindrome", "transformer", "abba", "form=paper"
    ),
    Entry(IDEAS, "a language model that runs a machine", "increment", "decoder", "1011"),
    Entry(IDEAS, "sorting in one pass of attention", "rasp-sort", "decoder", "c a d a"),
    Entry(IDEAS, "SGD that carries out a learning algorithm", EXAMPLE, "emulator"),
    Entry(IDEAS, "SGD that runs a RISC-V program", "rv32-fibonacci", "emulator"),
    Entry(IDEAS, "a convolution that moves a head over a grid", EXAMPLE, "rcnn"),
)
TARGETS = {"turing machine": "tape", "circuit": "relu", "program": "emulator", "rasp program": "decoder"}
"""Where an example of each kind is shown; others on `relu`."""
UNPRINTABLE = ("aiger-binary", "ELF")
NEED_PROGRAMS = ("verilog", "C")
"""Formats that need a program of others to be read."""


def gallery(python: bool) -> list[Entry]:
    """All entries, in order; a Python function only where the studio may run one."""
    entries = [*BEGIN]
    if python:
        entries.append(Entry("Your own code", "a Python function", PYTHON, "relu", "a=9 b=11"))
    for kind in all_kinds():
        for known in kind.formats:
            target = "rcnn" if known.name == "golly" else TARGETS.get(kind.name, "relu")
            if known.name not in UNPRINTABLE:
                needs = " (needs its compiler)" if known.name in NEED_PROGRAMS else ""
                entries.append(Entry("A text in each format", f"{known.name}{needs}", known.example, target))
    return entries + [
        Entry("Everything that is ready", f"{name}: {what}", name, _target_of(name))
        for name, what in ready_names().items()
    ]


def _target_of(name: str) -> str:
    kind = next(kind for kind in all_kinds() if name in kind.ready)
    return TARGETS.get(kind.name, "emulator" if kind.name == "learner" else "relu")
