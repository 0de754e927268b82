"""A saved net as a folder: reading it with every size and sum checked first; what the checkers share."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors

Arrays = dict[str, NDArray[Any]]

CONFIG, NETWORK, MODEL, CERTIFICATE = "config.json", "network.json", "model.safetensors", "certificate.json"
LIMITS = {CONFIG: 256 << 20, NETWORK: 64 << 20, MODEL: 16 << 30, CERTIFICATE: 64 << 20}
"""Largest sizes, in bytes, that are read at all."""

ATTEMPTS = 100
"""To read the files together, beside someone who writes them."""

LARGEST_OPTION = 1 << 53
"""Options say for how many steps `verify` runs a program; beyond this no loop counts."""
PLACES = {"first"}
"""Options that are places on a tape, which begin below 0; all others count."""

VERSION = 3
"""The format that is written. Format 2 is the same but for the graph, and is read where there is none."""
OLDER = {
    1: ": format 1 does not record how its source was lowered",
    2: ": format 2 has arrays of a form of its own for each target, in place of the network's graph",
}

WITH_TRAINING: frozenset[str] = frozenset({"emulator", "extended", "simplex", "tape"})
"""Targets whose networks run while they are trained: the graph has the rule of training."""
WITH_NETWORK = WITH_TRAINING | {"decoder", "rcnn", "relu", "transformer"}
"""Targets whose folders hold the graph of the network."""
WITHOUT = "exact"
"""The memory of an emulator whose activation is a power and whose numbers have 80 digits: no graph has
these."""

DISGUISED = "disguised"
"""What stands for the target of a net in disguise."""

SOURCE, LOWERED, PASS = BESIDE_THE_NET = ("source.", "lowered.", "pass.")
"""Prefixes of arrays that belong to the source, to what it was lowered to, and to the passes in between."""
OF_NETWORK = "network."
"""The prefix of arrays that the graph names."""

COMPUTES_SOURCE = "computes this source, for all inputs"
OWN_TABLE = "computes its own table; source not checked"


def tested_on(inputs: int) -> str:
    """The verdict on a net that was run, not proved."""
    return "tested on 1 input" if inputs == 1 else f"tested on {inputs:,} inputs"


AGAIN = "Compile or train the net again, and save it."


class CheckError(Exception):
    """Something in a saved net does not hold: `what` is a sentence, `where` a file or an array, `advice` the
    next thing to try."""

    def __init__(self, what: str, *, where: str = "", advice: str = "") -> None:
        self.what, self.where, self.advice = what, where, advice
        position = f" ({where})" if where else ""
        super().__init__(f"{what.rstrip('.')}{position}. {advice}".rstrip())


class NotProved(Exception):
    """Something may well hold, but the checker has no proof of it: the reason, as half a sentence."""


class Unchecked(CheckError):
    """Nothing was checked: this is no saved net, or one of an unknown kind or format, or too large."""


def require(holds: Any, otherwise: str, advice: str = AGAIN) -> None:
    """`CheckError` unless it holds."""
    if not holds:
        raise CheckError(otherwise, advice=advice)


@dataclass(frozen=True)
class Folder:
    """The files of a saved net, parsed; sums agree, nothing else has been checked."""

    config: dict[str, Any]
    arrays: Arrays
    certificate: dict[str, Any]
    network: dict[str, Any] | None = None
    """The graph, of a net whose target has one; its arrays are `part(OF_NETWORK)`."""
    known: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What has been read of it so far, so that it is not read twice."""

    @property
    def pass_names(self) -> list[str]:
        """The names of the passes that the source went through."""
        entries = self.config.get("passes", [])
        require(isinstance(entries, list), "the passes are not a list")
        named = all(isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in entries)
        require(named, "a pass has no name")
        return [entry["name"] for entry in entries]

    @property
    def defaults(self) -> list[dict[str, Any]]:
        """The defaults of the options of each lowering, then of the target."""
        stages = self.config.get("defaults", [])
        fits = isinstance(stages, list) and all(isinstance(stage, dict) for stage in stages)
        require(fits, "the defaults are not a list of options")
        return stages

    @property
    def own(self) -> Arrays:
        """The arrays of the net itself beside those of its graph, which are those that the loader gives to
        it."""
        beside = (*BESIDE_THE_NET, OF_NETWORK) if self.network is not None else BESIDE_THE_NET
        return {name: a for name, a in self.arrays.items() if not name.startswith(beside)}

    def part(self, prefix: str) -> Arrays:
        """The arrays whose names begin like this, by the rest of their names."""
        return {
            name.removeprefix(prefix): array for name, array in self.arrays.items() if name.startswith(prefix)
        }


@dataclass(frozen=True)
class Checked:
    """What the checker of a target has proved of a net's own arrays and names."""

    statements: Sequence[str]
    verdict: str = COMPUTES_SOURCE
    """What holds if the source that the net was compared with is bound to the user's; another one where even
    that is not enough."""


def read_folder(path: str | os.PathLike[str]) -> Folder:
    """Reads the files, refusing what is missing, too large, malformed or mixed up."""
    folder = Path(path)
    if not os.path.isdir(folder):  # of a name that cannot be one, `Path.is_dir` raises
        raise Unchecked(f"{folder} is not a folder", advice="Give the folder that `save` wrote.")
    files = _together(folder)
    config, certificate = (parsed(files[name], folder / name) for name in (CONFIG, CERTIFICATE))
    for data, name, keys in (
        (config, CONFIG, {"version": int, "target": str, "net": dict, "source": dict, "options": dict}),
        (certificate, CERTIFICATE, {"version": int, "target": str, "claims": dict, "sha256": dict}),
    ):
        for key, kind in keys.items():
            if not isinstance(data.get(key), kind):
                raise CheckError(
                    f"the entry {key!r} is missing or of the wrong kind", where=str(folder / name)
                )
        if data["version"] != VERSION and (data["version"] != 2 or _has_network(config)):
            raise Unchecked(
                f"the file is of format {data['version']}, and this program reads format {VERSION}"
                + OLDER.get(data["version"], ""),
                where=str(folder / name),
                advice="Compile and save the net again with this version"
                + (", or update this program." if data["version"] > VERSION else "."),
            )
    for name, content in files.items():
        if name != CERTIFICATE:
            issued_for(certificate, name, content, folder)
    wanted = _has_network(config)
    if wanted != (NETWORK in files):
        raise CheckError(
            f"{NETWORK} is missing" if wanted else f"a net of this target has no {NETWORK}", where=str(folder)
        )
    if config["target"] != certificate["target"]:
        raise CheckError("config and certificate name different targets", where=str(folder))
    for name, value in config["options"].items():
        size = abs(value) if name in PLACES and isinstance(value, int) else value
        small = not isinstance(size, int) or 0 <= size < LARGEST_OPTION
        require(small, f"the option {name!r} is no number that a net is compiled with")
    network = parsed(files[NETWORK], folder / NETWORK) if wanted else None
    return Folder(config, tensors_of(files[MODEL], folder / MODEL), certificate, network)


def _has_network(config: dict[str, Any]) -> bool:
    """Whether a folder that says this holds a graph."""
    target, net = config["target"], config["net"]
    return target in WITH_NETWORK and not (target == "emulator" and net.get("memory") == WITHOUT)


def _together(folder: Path) -> dict[str, bytes]:
    """The files as they stood there at one time; of these the graph may be missing. Someone may be saving to
    this name, and another folder or another file take the place of one that was just read: then all are read
    again."""
    for _ in range(ATTEMPTS):
        before = _identity(folder)
        try:
            found = {
                name: bytes_of(folder / name, limit)
                for name, limit in LIMITS.items()
                if name != NETWORK or os.path.lexists(folder / name)
            }
        except Unchecked:
            if _identity(folder) == before:
                raise
            continue
        if _identity(folder) == before:
            return found
    raise Unchecked("the folder is written again and again", where=str(folder), advice="Try it later.")


def _identity(folder: Path) -> list[tuple[int, ...] | None]:
    """What tells files from others that were there under the same names."""
    found: list[tuple[int, ...] | None] = []
    for name in LIMITS:
        try:
            seen = os.stat(folder / name)
            found.append((seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns))
        except OSError:
            found.append(None)
    return found


def issued_for(certificate: dict[str, Any], name: str, content: bytes, folder: Path) -> None:
    """Refuses a file that is not the one whose sum the certificate has."""
    if certificate["sha256"].get(name) != hashlib.sha256(content).hexdigest():
        raise CheckError(
            f"{name} is not the file that the certificate was issued for",
            where=str(folder),
            advice="It was altered, or files of two nets were mixed up. Compile and save the net again.",
        )


def bytes_of(path: Path, limit: int) -> bytes:
    """What a file holds, if it is not too large."""
    if not os.path.isfile(path):
        raise Unchecked(f"{path.name} is missing", where=str(path.parent))
    size = path.stat().st_size
    if size > limit:
        raise Unchecked(f"{path.name} has {size:,} bytes, more than the limit of {limit:,}", where=str(path))
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unchecked(f"{path.name} cannot be read: {error.strerror}", where=str(path)) from error


def parsed(content: bytes, path: Path) -> dict[str, Any]:
    """A JSON object."""
    try:
        data = json.loads(content, parse_constant=_no_number, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise CheckError(f"{path.name} is not JSON: {error}", where=str(path)) from error
    if not isinstance(data, dict):
        raise CheckError(f"{path.name} does not hold a JSON object", where=str(path))
    return data


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which every key stands once: of two, a person may read the one and a program the other."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands there twice")
    return found


def tensors_of(content: bytes, path: Path) -> Arrays:
    """Arrays of numbers that are finite, and that no hardware takes for 0."""
    try:
        arrays = parse_tensors(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise CheckError(f"{path.name} is not a safetensors file: {error}", where=str(path)) from error
    parsed(content[8 : 8 + int.from_bytes(content[:8], "little")], path)  # its header, which names arrays
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise CheckError(f"the array {name!r} holds numbers that are not finite", where=str(path))
        if array.dtype.kind == "f" and ((array != 0) & (np.abs(array) < np.finfo(array.dtype).tiny)).any():
            raise CheckError(f"the array {name!r} holds numbers too small to be normal", where=str(path))
    return arrays
