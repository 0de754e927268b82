"""Saving a compiled net as a folder that opens elsewhere, and loading it again.

`config.json` holds sizes, names, options and the source; `model.safetensors` every array;
`certificate.json` the claims, and the sums of the other two files.
"""

import hashlib
import json
import os
from typing import Any

import numpy as np
from safetensors.numpy import save as tensors_to_bytes

from tapegrad.checker.folder import CERTIFICATE, CONFIG, MODEL, VERSION, read_folder
from tapegrad.compile import Compiled, prepare
from tapegrad.errors import BrokenNet, InputError, TapegradError
from tapegrad.files import write_folder
from tapegrad.nets import target_named
from tapegrad.source_json import source_from_json, source_to_json

_SOURCE = "source."
"""Prefix of the arrays that belong to the source rather than to the net."""


def save(compiled: Compiled, path: str | os.PathLike[str]) -> None:
    """Writes the net's folder, whole or not at all."""
    source, source_arrays = source_to_json(compiled.source)
    arrays = compiled.net.arrays() | {_SOURCE + name: a for name, a in source_arrays.items()}
    model = tensors_to_bytes({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    config = _json(
        {
            "version": VERSION,
            "target": compiled.target.name,
            "options": compiled.options,
            "passes": [rewriting.name for rewriting in compiled.passes],
            "net": compiled.net.config(),
            "source": source,
        }
    )
    certificate = _json(
        {
            "version": VERSION,
            "target": compiled.target.name,
            "claims": compiled.net.certificate(),
            "sha256": {
                name: hashlib.sha256(data).hexdigest() for name, data in ((CONFIG, config), (MODEL, model))
            },
        }
    )
    write_folder(path, {CONFIG: config, MODEL: model, CERTIFICATE: certificate})


def load(path: str | os.PathLike[str]) -> Compiled:
    """The compiled net again. The net itself comes from its arrays alone; the passes, which translate the
    user's inputs and states, are derived from the saved source."""
    folder = read_folder(path)
    config = folder.config
    own = {name: a for name, a in folder.arrays.items() if not name.startswith(_SOURCE)}
    theirs = {name.removeprefix(_SOURCE): a for name, a in folder.arrays.items() if name.startswith(_SOURCE)}
    source = source_from_json(config["source"], theirs)
    try:
        target = target_named(config["target"])
        net = target.net.from_saved(config["net"], own)
        passes = prepare(source, target.name, config["options"])
    except TapegradError as error:
        raise BrokenNet(f"the net cannot be loaded: {error}", where=str(path)) from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise BrokenNet(
            f"the net lacks something that its target needs: {type(error).__name__} {error}",
            where=str(path),
            advice="Compile and save it again.",
        ) from error
    return Compiled(net, target, source, passes, config["options"])


def _json(data: dict[str, Any]) -> bytes:
    try:
        return (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except TypeError as error:
        raise InputError(
            f"the net was compiled with an option that cannot be saved: {error}",
            advice="Give inputs as lists of words.",
        ) from error
