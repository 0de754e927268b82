"""Finding a source: by the name of a ready one, in a file, or in a text of any format."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tapegrad.circuits import formats as circuit_formats
from tapegrad.circuits import library as circuit_library
from tapegrad.errors import FormatError, InputError
from tapegrad.formats import Format
from tapegrad.learners import library as learner_library
from tapegrad.lowering.rewriting import Source
from tapegrad.machines import formats as machine_formats
from tapegrad.machines import library as machine_library
from tapegrad.machines.formats import Loaded

LARGEST = 256 << 20
"""Files larger than this, in bytes, are not read."""

LIBRARIES = (machine_library, circuit_library, learner_library)


@dataclass(frozen=True)
class Found:
    """A source, where it came from, and the input that came with it: the arguments of `source.start`."""

    source: Source
    origin: str
    inputs: tuple[Any, ...] = ()


def all_formats() -> tuple[Format, ...]:
    """Every format that can be read, machines first."""
    return (*machine_formats.FORMATS, *circuit_formats.FORMATS)


def ready_names() -> dict[str, str]:
    """Every ready machine, circuit and learner with a line on what it does."""
    return {name: entry.summary for library in LIBRARIES for name, entry in library.READY.items()}


def find(text: str) -> Found:
    """A ready name, else an existing file, else the text itself in one of the formats."""
    if any(text in library.READY for library in LIBRARIES):
        return find_text(text)
    path = Path(text)
    if "\n" not in text and len(text) < 4096 and path.is_file():
        if path.stat().st_size > LARGEST:
            raise FormatError(f"{path} is larger than {LARGEST >> 20} MiB")
        return _parsed(path.read_bytes(), str(path))
    if "\n" not in text and (os.sep in text or path.suffix in _ENDINGS):
        raise InputError(f"there is no file {text!r}")
    return find_text(text)


def find_text(text: str) -> Found:
    """A ready name, else the text itself in one of the formats: never a file."""
    if text in machine_library.READY:
        return Found(machine_library.ready(text), "ready machine", machine_library.READY[text].example)
    if text in circuit_library.READY:
        return Found(circuit_library.ready(text), "ready circuit")
    if text in learner_library.READY:
        return Found(learner_library.ready(text), "ready learner", learner_library.example_samples(text))
    return _parsed(text.encode(), "text")


def read(text: str) -> Source:
    """The source alone: of a ready name, a file, or a text in any format."""
    return find(text).source


_ENDINGS = {".txt", ".yaml", ".yml", ".aag", ".aig", ".blif", ".bench", ".tm"}


def _parsed(data: bytes, origin: str) -> Found:
    for known in all_formats():
        if known.detect(data):
            return _found(known.read(data), f"{origin}, {known.name}")
    listed = ", ".join(known.name for known in all_formats())
    shown = repr(data[:60].decode(errors="replace")) if origin == "text" else origin
    raise FormatError(
        f"{shown} is neither a ready name, nor a file, nor a text in a known format",
        advice=f"Formats: {listed}. `tapegrad formats` shows an example of each and the ready names.",
    )


def _found(read: Any, origin: str) -> Found:
    if isinstance(read, Loaded):
        return Found(read.machine, origin, (read.start(),))
    return Found(read, origin)
