"""A classifier in training as a folder: the files of a saved net, and the weights as they are now."""

import hashlib
import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as tensors_to_bytes

from tapegrad.errors import BrokenNet
from tapegrad.files import write_folder
from tapegrad.learners import Learner
from tapegrad.sources import source_from_json, source_to_json
from tapegrad.targets.emulator.net import PracticalNet
from tapegrad_check.folder import CERTIFICATE, CONFIG, MODEL, VERSION, read_folder

SETTINGS = {
    "threshold": float | int | str | None,
    "thresholds": list | None,
    "passes": int,
    "precision": str,
    "random_state": int,
    "progress": bool,
    "classes": list,
    "steps": int,
}


def write_estimator(
    path: str | os.PathLike[str],
    net: PracticalNet,
    learner: Learner,
    weights: NDArray[np.floating],
    settings: dict[str, Any],
) -> None:
    """Writes the folder, whole or not at all."""
    source, source_arrays = source_to_json(learner)
    arrays = net.arrays() | {f"source.{name}": array for name, array in source_arrays.items()}
    model = tensors_to_bytes(
        {name: np.ascontiguousarray(array) for name, array in (arrays | {"trained": weights}).items()}
    )
    config = _json(
        {
            "version": VERSION,
            "target": "emulator",
            "options": {},
            "net": net.config(),
            "source": source,
            "estimator": settings,
        }
    )
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in ((CONFIG, config), (MODEL, model))}
    certificate = _json(
        {"version": VERSION, "target": "emulator", "claims": net.certificate(), "sha256": sums}
    )
    write_folder(path, {CONFIG: config, MODEL: model, CERTIFICATE: certificate})


def read_estimator(
    path: str | os.PathLike[str],
) -> tuple[PracticalNet, Learner, NDArray[np.floating], dict[str, Any]]:
    """Net, learner, weights and settings; `BrokenNet` says what is wrong with the folder."""
    folder = read_folder(path)
    settings = folder.config.get("estimator")
    if not isinstance(settings, dict) or any(
        not isinstance(settings.get(name), kind) for name, kind in SETTINGS.items()
    ):
        raise BrokenNet("this is no saved classifier", where=str(path), advice="Load it with tapegrad.load.")
    try:
        net = PracticalNet.from_saved(folder.config["net"], folder.arrays)
        trained = folder.arrays["trained"]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise BrokenNet(
            f"the classifier lacks something: {type(error).__name__} {error}", where=str(path)
        ) from error
    if trained.shape != net.weights.shape or len(settings["classes"]) != 2:
        raise BrokenNet("the parts of the classifier do not fit together", where=str(path))
    own = {name.removeprefix("source."): array for name, array in folder.arrays.items() if "source." in name}
    learner = source_from_json(folder.config["source"], own)
    if not isinstance(learner, Learner):
        raise BrokenNet("the saved source is no learner", where=str(path))
    return net, learner, trained, settings


def _json(data: dict[str, Any]) -> bytes:
    return (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
