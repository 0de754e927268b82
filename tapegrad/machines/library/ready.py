"""Ready machines by name."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tapegrad.errors import SourceError
from tapegrad.machines.library.arithmetic import addition, increment, multiplication
from tapegrad.machines.library.busy_beavers import BUSY_BEAVERS, busy_beaver
from tapegrad.machines.library.universal import universal
from tapegrad.machines.library.universal_code import universal_code
from tapegrad.machines.library.words import brackets, copying, palindrome
from tapegrad.machines.model import TuringMachine


@dataclass(frozen=True)
class ReadyMachine:
    """A machine that comes with the package."""

    summary: str
    example: tuple[str, ...]
    """Input words that show it at work."""
    build: Callable[[], TuringMachine]


def _beaver(size: str) -> ReadyMachine:
    states, symbols = size.split("x")
    steps = BUSY_BEAVERS[size].steps
    summary = f"runs {steps:,} steps, the most that {states} states and {symbols} symbols can before halting"
    return ReadyMachine(summary, ("",), partial(busy_beaver, size))


READY: dict[str, ReadyMachine] = {
    "increment": ReadyMachine("adds one to a binary number", ("1011",), increment),
    "addition": ReadyMachine("adds two binary numbers", ("1011+110",), addition),
    "multiplication": ReadyMachine("multiplies two unary numbers", ("11*111",), multiplication),
    "palindrome": ReadyMachine("accepts words that read the same backwards", ("abba",), palindrome),
    "brackets": ReadyMachine("accepts balanced round and square brackets", ("([])()",), brackets),
    "copying": ReadyMachine("copies a word behind a separator", ("abb",), copying),
    **{f"busy-beaver-{size}": _beaver(size) for size in BUSY_BEAVERS},
    "universal": ReadyMachine(
        "runs the machine whose table is on its tape; here: increment on 11",
        (universal_code(increment(), "11"),),
        universal,
    ),
}


def ready(name: str) -> TuringMachine:
    """The ready machine of this name."""
    if name not in READY:
        raise SourceError(f"there is no ready machine {name!r}", advice=f"Choose one of {', '.join(READY)}.")
    return READY[name].build()
