"""A trained extended network as a folder: the same three files as every saved net (`tapegrad.saved`).

`config.json` describes primary network, formats and algorithm; `model.safetensors` holds the graph, the data
and every trained weight; `certificate.json` says what training came to: theta, the output and its loss.
"""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet, InputError
from tapegrad.precision import in_double
from tapegrad.saved import EXTENDED, what_is_broken, write_net
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.descent.network import Weights
from tapegrad.targets.extended.connected import Connected
from tapegrad.targets.extended.descriptions import (
    algorithm_from_json,
    algorithm_to_json,
    format_from_json,
    format_to_json,
    primary_from_json,
    primary_to_json,
)
from tapegrad.targets.extended.extend import Extended, TrainingRun, check_data
from tapegrad.targets.tape.constants import Constants
from tapegrad.targets.tape.graph import Graph
from tapegrad.targets.tape.net import TapeNet
from tapegrad_check.extended import check
from tapegrad_check.folder import read_folder

_GRAPH, _WEIGHT = "graph.", "weight."
"""Prefixes of the arrays of the graph, and of s, T, H and z."""


def save(extended: Extended, run: TrainingRun, path: str | os.PathLike[str]) -> None:
    """Writes the folder of a network that has been trained, whole or not at all."""
    net, connected = extended.net, extended.net.error.network.primary
    assert isinstance(connected, Connected)
    if not net.done(run.weights):
        raise InputError("the network has not been trained to its end", advice="Train it first.")
    source, start, places = algorithm_to_json(extended.algorithm)
    config = {
        "target": EXTENDED,
        "options": {},
        "passes": [rewriting.name for rewriting in extended.algorithm.rewritings],
        "net": net.config()
        | {
            "read_only": net.read_only,
            "primary": primary_to_json(extended.primary),
            "data_format": format_to_json(connected.data_format),
            "weight_format": format_to_json(connected.weight_format),
            "start": start,
            "training": {"steps": run.steps, "engine": run.engine, "seconds": run.seconds},
        },
        "source": source,
    }
    arrays: dict[str, NDArray[Any]] = {"x": extended.x, "y": extended.y, **places}
    arrays |= {_GRAPH + name: array for name, array in net.arrays().items()}
    arrays |= {_WEIGHT + name: np.asarray(w) for name, w in run.weights.weights._asdict().items()}
    claims = net.certificate() | {
        "final_loss": run.loss,
        "theta": run.theta.tolist(),
        "output": run.output.tolist(),
        "deviation": run.deviation,
    }
    write_net(path, config, arrays, claims)


@in_double
def load(path: str | os.PathLike[str]) -> tuple[Extended, TrainingRun]:
    """The network again, and what its training came to, computed anew from the weights. A folder whose
    certificate does not hold is refused."""
    folder = read_folder(path)
    if folder.config["target"] != EXTENDED:
        raise BrokenNet(
            f"the folder holds a net of the target {folder.config['target']!r}",
            where=str(path),
            advice="Load it with tapegrad.load.",
        )
    with what_is_broken(path):
        check(folder.config["net"], folder.arrays, folder.certificate["claims"])
        extended = _extended(folder.config, folder.arrays)
        training = folder.config["net"]["training"]
        carry = Descent(_weights(extended, folder.arrays), int(training["steps"]))
        if not extended.net.done(carry):
            raise BrokenNet("these are not the weights of a training that has ended")
        return extended, extended.outcome(carry, str(training["engine"]), float(training["seconds"]))


def _extended(config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Extended:
    """The network before training: the graph from its arrays, everything around it from its description."""
    net, x, y = config["net"], arrays["x"], arrays["y"]
    cells, read_only = net["cells"], net["read_only"]
    if arrays[_WEIGHT + "H"].shape[0] != cells or arrays[_WEIGHT + "T"].shape[0] != cells:
        raise BrokenNet(f"the tapes do not have the {cells} cells that they should")
    primary = primary_from_json(net["primary"])
    data_format, weight_format = format_from_json(net["data_format"]), format_from_json(net["weight_format"])
    check_data(primary, x, y, data_format)
    algorithm = algorithm_from_json(config["source"], net["start"], arrays, read_only, cells)
    if tuple(net["states"]) != algorithm.machine.states:
        raise BrokenNet("the states of the net are not those of the algorithm")
    bits = data_format.width * (x.size + y.size), primary.weights * weight_format.width
    if (len(algorithm.data), len(algorithm.result)) != bits:
        raise BrokenNet("the places of data and result do not fit the numbers and their formats")
    tape_net = TapeNet.of(
        Graph(**{n.removeprefix(_GRAPH): a for n, a in arrays.items() if n.startswith(_GRAPH)}),
        Constants(**net["constants"]),
        tuple(net["states"]),
        tuple(net["symbols"]),
        cells,
        primary=Connected.of(primary, algorithm, data_format, weight_format, cells),
        x=x,
        y=y,
        read_only=read_only,
    )
    return Extended(tape_net, primary, algorithm, x, y)


def _weights(extended: Extended, arrays: dict[str, NDArray[Any]]) -> Weights:
    """The trained weights, each in the shape that the network had before training."""
    before = extended.start().weights
    found = Weights(*(arrays[_WEIGHT + name] for name in Weights._fields))
    for name, array, start in zip(Weights._fields, found, before, strict=True):
        if array.shape != np.shape(start) or array.dtype != np.float64:
            raise BrokenNet(f"the weights {name!r} have the shape {array.shape}, not {np.shape(start)}")
    return found
