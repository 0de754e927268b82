"""Random programs of one kind through one target, each compared with its own interpreter at every step."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tapegrad._compile import compile
from tapegrad._sources import all_kinds
from tapegrad._verify import verify
from tapegrad.errors import Refused, TapegradError

STEPS = 200
"""Most steps of a net on one input; a random machine need not halt."""


@dataclass
class Campaign:
    """What came of it: how many programs agreed, were refused with a reason, or disagreed."""

    kind: str
    target: str
    first_seed: int
    programs: int = 0
    agreed: int = 0
    steps: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    """Reasons, and how many programs each turned away."""
    mismatches: dict[int, str] = field(default_factory=dict)
    """Seeds, and where net and source parted."""
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The campaign as plain JSON."""
        return asdict(self)


def campaign(
    kind: str,
    target: str,
    count: int,
    *,
    seed: int = 0,
    steps: int = STEPS,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Campaign:
    """Compiles and verifies the random sources of `count` consecutive seeds. The same seed gives the same
    program anywhere, so a seed is all that is needed to see a mismatch again."""
    sample = next((known.sample for known in all_kinds() if known.name == kind), None)
    if sample is None:
        names = ", ".join(known.name for known in all_kinds() if known.sample is not None)
        raise Refused(f"there are no random sources of the kind {kind!r}", advice=f"Choose one of {names}.")
    began = time.perf_counter()
    found = Campaign(kind, target, seed)
    for number in range(seed, seed + count):
        found.programs += 1
        try:
            report = verify(compile(sample(number), target, **(options or {})), steps=steps, seed=number)
        except TapegradError as error:
            found.refused[error.what] = found.refused.get(error.what, 0) + 1
            continue
        finally:
            if progress is not None:
                progress(found.programs)
        found.steps += report.steps
        if report.mismatch is None:
            found.agreed += 1
        else:
            found.mismatches[number] = str(report)
    found.seconds = time.perf_counter() - began
    return found
