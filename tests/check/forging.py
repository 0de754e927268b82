"""A forger's workshop: saved nets in memory, free to be altered and written with all sums renewed."""

import hashlib
import json
import resource
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as tensors_to_bytes

from tapegrad_check.folder import BESIDE_THE_NET, CERTIFICATE, CONFIG, MODEL

SECONDS, MEMORY = 60, 2 << 30
"""Of the processor, and bytes that it may ask for, used or not: no small folder, however forged, may keep the
checker or the loader busy for longer. By the clock it may take any time, where there is other work."""

Arrays = dict[str, NDArray[Any]]


class Again(str):
    """A key that stands beside an equal one, which Python's dictionaries do not have and JSON does."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


@dataclass
class Saved:
    """A saved net, free to be altered. Arrays are never altered in place, but replaced."""

    config: dict[str, Any]
    arrays: Arrays
    claims: dict[str, Any]
    beside: dict[str, Any] = field(default_factory=dict)
    """What else there is, by the names of files: JSON, or arrays."""
    certified: bool = True
    """Whether there is a certificate; a stock checkpoint has none."""

    @classmethod
    def of(cls, path: Path) -> "Saved":
        """The net in a folder."""
        files = {file.name: file.read_bytes() for file in sorted(path.iterdir()) if file.suffix != ".md"}
        read: dict[str, Any] = {
            name: dict(sorted(parse_tensors(content).items()))  # they come in any order
            if name.endswith(".safetensors")
            else json.loads(content)
            for name, content in files.items()
        }
        config, arrays, certificate = (read.pop(name, None) for name in (CONFIG, MODEL, CERTIFICATE))
        return cls(
            config, arrays, certificate["claims"] if certificate else {}, read, certificate is not None
        )

    def copy(self) -> "Saved":
        """Another one, to be altered."""
        beside = {
            n: dict(own) if n.endswith(".safetensors") else deepcopy(own) for n, own in self.beside.items()
        }
        return Saved(deepcopy(self.config), dict(self.arrays), deepcopy(self.claims), beside, self.certified)

    def write(self, path: Path) -> None:
        """The folder, its sums renewed."""
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        files = {CONFIG: self.config, MODEL: self.arrays, **self.beside}
        content = {
            name: _tensors(own) if name.endswith(".safetensors") else written(own)
            for name, own in files.items()
        }
        if self.certified:
            certificate = {
                "version": self.config.get("version"),
                "target": self.config.get("target"),
                "claims": self.claims,
                "sha256": {name: hashlib.sha256(own).hexdigest() for name, own in content.items()},
            }
            content[CERTIFICATE] = written(certificate)
        for name, own in content.items():
            (path / name).write_bytes(own)

    def own(self) -> list[str]:
        """The names of the net's own arrays."""
        return [name for name in self.arrays if not name.startswith(BESIDE_THE_NET)]


def _tensors(arrays: Arrays) -> bytes:
    return tensors_to_bytes({name: np.asarray(array, order="C") for name, array in arrays.items()})


def written(data: Any) -> bytes:
    """JSON, in which infinity is a number that is too large."""
    return json.dumps(data).replace("Infinity", "1e999").encode()


class TooSlow(Exception):
    """The checker or the loader took longer than a small folder may take."""


def _ring(number: int, frame: Any) -> None:
    raise TooSlow


@contextmanager
def bounded(what: str, seconds: float = SECONDS) -> Iterator[None]:
    """AssertionError if it takes more of the processor, or of memory, than a small folder may take."""
    with open("/proc/self/statm") as file:
        held = int(file.read().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGPROF, _ring)
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, limits[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds, 1)  # again, where it was lost in a callback
    try:
        yield
    except TooSlow:
        raise AssertionError(f"{what} takes more than {seconds:g} seconds of the processor") from None
    except MemoryError:
        raise AssertionError(f"{what} takes more than {MEMORY >> 20} MiB") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGPROF, before)
