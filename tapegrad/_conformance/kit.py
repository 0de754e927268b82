"""The kit as a folder: for every network its layers, inputs, and what each layer must give.

kit.json                    version, and for each network its layers, formats, and the sums of its files
NAME.net.safetensors        weights and biases, under LAYER.NAME
NAME.inputs.safetensors     inputs
NAME.expected.safetensors   the value of every layer
NAME.onnx                   the network in float32, every layer an output; made where `onnx` is installed
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tapegrad._conformance import NET_NAMES
from tapegrad._conformance.exact import evaluated
from tapegrad._conformance.formats import NAMES, scale_of, shortfall
from tapegrad._conformance.graph import Graph
from tapegrad._conformance.nets import CASES
from tapegrad._conformance.training import Training, training_case
from tapegrad._files import write_folder
from tapegrad.errors import BrokenNet, FormatError, InputError

FORMAT = "tapegrad conformance kit 1"
INDEX = "kit.json"
PARTS = ("net", "inputs", "expected")
TRAINING = "training-"
AGAIN = "Make it again: tapegrad conformance make -o FOLDER"


@dataclass(frozen=True)
class Member:
    """One network of a kit."""

    net: Graph | Training
    inputs: dict[str, NDArray[Any]]
    expected: dict[str, NDArray[np.float64]]
    bits: int
    """What its most demanding layer needs."""
    shortfalls: dict[str, str]
    """For each format why it does not owe the exact result; empty where it does."""
    scale: int = 1
    """In bytes all values are times this."""

    @property
    def name(self) -> str:
        """Of the network."""
        return self.net.name

    @property
    def names(self) -> list[str]:
        """What is compared, in order."""
        return self.net.names

    @property
    def units(self) -> dict[str, str]:
        """What the units of a layer are for."""
        return {own.name: own.units for own in self.net.layers} if isinstance(self.net, Graph) else {}


def member(name: str) -> Member:
    """A network, with what its layers must give."""
    if name.startswith(TRAINING):
        own = name.removeprefix(TRAINING)
        training, expected = training_case(own)
        shortfalls = {each: "" if each == own else f"its weights are chosen for {own}" for each in NAMES}
        return Member(training, {}, expected, 0, shortfalls)
    case = CASES[name]()
    found = evaluated(case.graph, case.inputs)
    if not np.array_equal(found.values[case.graph.output], case.answer):
        raise BrokenNet(f"the network {name!r} does not give what its source does")
    shortfalls = {each: shortfall(case.graph, found, case.inputs, each) for each in NAMES}
    scale = 1 if shortfalls["int8"] else scale_of(case.graph, case.inputs)
    return Member(case.graph, case.inputs, found.values, found.bits, shortfalls, scale)


def write_kit(folder: Path, names: Iterable[str] = NET_NAMES, *, onnx: bool | None = None) -> list[Member]:
    """Makes a kit, in one step. ONNX models are added where the package is there, or as asked for."""
    onnx = find_spec("onnx") is not None if onnx is None else onnx
    files: dict[str, bytes] = {}
    members, listed = [member(name) for name in names], []
    for own in members:
        parts = {"net": own.net.arrays(), "inputs": own.inputs, "expected": own.expected}
        made = {f"{own.name}.{part}.safetensors": _bytes(parts[part]) for part in PARTS}
        if onnx and isinstance(own.net, Graph):
            made[f"{own.name}.onnx"] = _onnx(own)
        sums = {name: hashlib.sha256(content).hexdigest() for name, content in made.items()}
        facts = {"bits": own.bits, "shortfalls": own.shortfalls, "scale": own.scale, "sha256": sums}
        listed.append({**own.net.to_json(), **facts})
        files |= made
    index = {"format": FORMAT, "tapegrad": metadata.version("tapegrad"), "networks": listed}
    index["sha256"] = _index_sum(index)
    files[INDEX] = (json.dumps(index, indent=1) + "\n").encode()
    write_folder(folder, files)
    return members


def _bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def _onnx(own: Member) -> bytes:
    from tapegrad._conformance.runtimes.onnx_models import model_of  # an extra

    assert isinstance(own.net, Graph)
    rows = {name: len(array) for name, array in own.inputs.items()}
    return model_of(own.net, "float32", own.names, rows).SerializeToString()


def _index_sum(index: Mapping[str, Any]) -> str:
    own = {name: value for name, value in index.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()


def read_kit(folder: Path, names: Iterable[str] | None = None) -> list[Member]:
    """The networks of a kit; refused if it is of another version, or not as it was made."""
    path = folder / INDEX
    try:
        index = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{folder} is no kit: {error.strerror}", where=str(path), advice=AGAIN) from error
    except ValueError as error:
        raise FormatError(f"the index cannot be read: {error}", where=str(path), advice=AGAIN) from error
    if not isinstance(index, dict) or index.get("format") != FORMAT:
        raise FormatError("this is no kit, or of another format", where=str(path), advice=AGAIN)
    if index.get("tapegrad") != metadata.version("tapegrad"):
        said = f"the kit was made by version {index.get('tapegrad')!r}, and this is another"
        raise InputError(said, where=str(path), advice=AGAIN)
    if index.get("sha256") != _index_sum(index):
        raise FormatError("the index was altered", where=str(path), advice=AGAIN)
    chosen = [own for own in index["networks"] if names is None or own["name"] in set(names)]
    return [_member(folder, own) for own in chosen]


def _member(folder: Path, own: Mapping[str, Any]) -> Member:
    for name, wanted in own["sha256"].items():
        try:
            content = (folder / name).read_bytes()
        except OSError as error:
            raise FormatError(f"{name} is missing", where=str(folder), advice=AGAIN) from error
        if hashlib.sha256(content).hexdigest() != wanted:
            raise FormatError(f"{name} was altered", where=str(folder), advice=AGAIN)
    arrays, inputs, expected = (read_arrays(folder / f"{own['name']}.{part}.safetensors") for part in PARTS)
    kind = Training if own.get("training") else Graph
    net = kind.from_json(own, arrays)
    if isinstance(net, Graph):  # a file has its arrays in any order
        inputs = {name: inputs[name] for name in net.inputs}
    return Member(net, inputs, expected, own["bits"], own["shortfalls"], own["scale"])


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file in safetensors."""
    try:
        return load(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (SafetensorError, ValueError, KeyError) as error:
        raise FormatError(f"{path} is no file in safetensors: {error}") from error
