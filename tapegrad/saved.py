"""Saving a compiled net as a folder that opens elsewhere, and loading it again.

`config.json` holds sizes, names, options and the source; `model.safetensors` every array;
`certificate.json` the claims, and the sums of the other two files.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as tensors_to_bytes

from tapegrad.compile import Compiled, prepare
from tapegrad.errors import BrokenNet, InputError, TapegradError
from tapegrad.files import write_folder
from tapegrad.sources import source_from_json, source_to_json
from tapegrad.targets import target_named
from tapegrad_check.folder import CERTIFICATE, CONFIG, MODEL, VERSION, read_folder

_SOURCE = "source."
"""Prefix of the arrays that belong to the source rather than to the net."""


EXTENDED = "extended"
"""What stands for the target where a trained extended network was saved (`tapegrad.targets.extended`)."""


def save(compiled: Compiled, path: str | os.PathLike[str]) -> None:
    """Writes the net's folder, whole or not at all."""
    source, source_arrays = source_to_json(compiled.source)
    arrays = compiled.net.arrays() | {_SOURCE + name: a for name, a in source_arrays.items()}
    config = {
        "target": compiled.target.name,
        "options": compiled.options,
        "passes": [rewriting.name for rewriting in compiled.passes],
        "net": compiled.net.config(),
        "source": source,
    }
    write_net(path, config, arrays, compiled.net.certificate())


def load(path: str | os.PathLike[str]) -> Compiled:
    """The compiled net again. The net itself comes from its arrays alone; the passes, which translate the
    user's inputs and states, are derived from the saved source."""
    folder = read_folder(path)
    config = folder.config
    if config["target"] == EXTENDED:
        raise BrokenNet(
            "the folder holds a trained extended network, not a compiled net",
            where=str(path),
            advice="Load it with tapegrad.targets.extended.load.",
        )
    own = {name: a for name, a in folder.arrays.items() if not name.startswith(_SOURCE)}
    theirs = {name.removeprefix(_SOURCE): a for name, a in folder.arrays.items() if name.startswith(_SOURCE)}
    source = source_from_json(config["source"], theirs)
    with what_is_broken(path):
        target = target_named(config["target"])
        net = target.net.from_saved(config["net"], own)
        passes = prepare(source, target.name, config["options"])
    return Compiled(net, target, source, passes, config["options"])


def write_net(
    path: str | os.PathLike[str],
    config: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    claims: Mapping[str, Any],
) -> None:
    """The three files of a net; the certificate holds the claims and the sums of the other two."""
    model = tensors_to_bytes({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    described = _json({"version": VERSION, **config})
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in ((CONFIG, described), (MODEL, model))}
    certificate = {"version": VERSION, "target": config["target"], "claims": claims, "sha256": sums}
    write_folder(path, {CONFIG: described, MODEL: model, CERTIFICATE: _json(certificate)})


@contextmanager
def what_is_broken(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever goes wrong while a net is put together from its files is the files' fault."""
    try:
        yield
    except TapegradError as error:
        raise BrokenNet(f"the net cannot be loaded: {error}", where=str(path)) from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise BrokenNet(
            f"the net lacks something that its target needs: {type(error).__name__} {error}",
            where=str(path),
            advice="Compile and save it again.",
        ) from error


def _json(data: dict[str, Any]) -> bytes:
    try:
        return (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except TypeError as error:
        raise InputError(
            f"the net was compiled with an option that cannot be saved: {error}",
            advice="Give inputs as lists of words.",
        ) from error
