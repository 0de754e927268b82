"""A saved net as a folder: reading it with every size and sum checked first, then its certificate."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors

from tapegrad.errors import BrokenNet

CONFIG, MODEL, CERTIFICATE = "config.json", "model.safetensors", "certificate.json"
LIMITS = {CONFIG: 256 << 20, MODEL: 16 << 30, CERTIFICATE: 64 << 20}
"""Largest sizes, in bytes, that are read at all."""

VERSION = 1
CHECKED_TARGETS = ("relu", "transformer", "simplex", "tape", "emulator", "rcnn", "extended")
"""Targets with a checker of their own: the module of that name beside this file."""


@dataclass(frozen=True)
class Folder:
    """The three files of a saved net, parsed; sums agree, nothing else has been checked."""

    config: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    certificate: dict[str, Any]


@dataclass(frozen=True)
class CheckReport:
    """What was re-derived from the files of a saved net."""

    folder: str
    target: str
    statements: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON."""
        return asdict(self)


def check(path: str | os.PathLike[str]) -> CheckReport:
    """Re-derives every claim of the certificate from the arrays; `BrokenNet` says what does not hold."""
    folder = read_folder(path)
    target = folder.config["target"]
    if target not in CHECKED_TARGETS:
        raise BrokenNet(
            f"there is no checker for the target {target!r}",
            where=f"{path}/{CONFIG}",
            advice=f"Checked targets are {', '.join(CHECKED_TARGETS)}.",
        )
    checker = import_module(f"tapegrad_check.{target}")
    try:
        statements = checker.check(folder.config["net"], folder.arrays, folder.certificate["claims"])
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise BrokenNet(
            f"the net lacks something that its target needs: {type(error).__name__} {error}",
            where=str(path),
            advice="Compile and save it again.",
        ) from error
    sums = f"{MODEL} and {CONFIG} have the sums that the certificate was issued for"
    return CheckReport(str(path), target, (sums, *statements))


def read_folder(path: str | os.PathLike[str]) -> Folder:
    """Reads the three files, refusing what is missing, too large, malformed or mixed up."""
    folder = Path(path)
    if not folder.is_dir():
        raise BrokenNet(f"{folder} is not a folder", advice="Give the folder that `save` wrote.")
    config_bytes, model_bytes, certificate_bytes = (_bytes(folder / name) for name in LIMITS)
    config, certificate = _json(config_bytes, folder / CONFIG), _json(certificate_bytes, folder / CERTIFICATE)
    for data, name, keys in (
        (config, CONFIG, {"version": int, "target": str, "net": dict, "source": dict, "options": dict}),
        (certificate, CERTIFICATE, {"version": int, "target": str, "claims": dict, "sha256": dict}),
    ):
        for key, kind in keys.items():
            if not isinstance(data.get(key), kind):
                raise BrokenNet(
                    f"the entry {key!r} is missing or of the wrong kind", where=str(folder / name)
                )
        if data["version"] != VERSION:
            raise BrokenNet(
                f"the file has version {data['version']}, this program reads version {VERSION}",
                where=str(folder / name),
                advice="Compile and save the net again with this version.",
            )
    for name, content in ((CONFIG, config_bytes), (MODEL, model_bytes)):
        if certificate["sha256"].get(name) != hashlib.sha256(content).hexdigest():
            raise BrokenNet(
                f"{name} is not the file that the certificate was issued for",
                where=str(folder),
                advice="It was altered, or files of two nets were mixed up. Compile and save the net again.",
            )
    if config["target"] != certificate["target"]:
        raise BrokenNet("config and certificate name different targets", where=str(folder))
    return Folder(config, _tensors(model_bytes, folder / MODEL), certificate)


def _bytes(path: Path) -> bytes:
    if not path.is_file():
        raise BrokenNet(f"{path.name} is missing", where=str(path.parent))
    size, limit = path.stat().st_size, LIMITS[path.name]
    if size > limit:
        raise BrokenNet(f"{path.name} has {size:,} bytes, more than the limit of {limit:,}", where=str(path))
    return path.read_bytes()


def _json(content: bytes, path: Path) -> dict[str, Any]:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BrokenNet(f"{path.name} is not JSON: {error}", where=str(path)) from error
    if not isinstance(data, dict):
        raise BrokenNet(f"{path.name} does not hold a JSON object", where=str(path))
    return data


def _tensors(content: bytes, path: Path) -> dict[str, NDArray[Any]]:
    try:
        arrays = parse_tensors(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise BrokenNet(f"{path.name} is not a safetensors file: {error}", where=str(path)) from error
    for name, array in arrays.items():
        if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
            raise BrokenNet(f"the array {name!r} holds numbers that are not finite", where=str(path))
    return arrays
