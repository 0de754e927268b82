"""The kit as a folder: for every network its nodes, inputs, and what each layer must give.

kit.json                    version, and for each network its nodes, formats, and the sums of its files
NAME.net.safetensors        the arrays of the nodes, under the names that kit.json has for them
NAME.inputs.safetensors     inputs
NAME.expected.safetensors   what every layer must give
NAME.onnx                   the network in float32, every layer an output; made where `onnx` is installed
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
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
from tapegrad._conformance.formats import INT8, NAMES, Form, scale_of, shortfall
from tapegrad._conformance.nets import ABOUT, CASES
from tapegrad._conformance.training import Training, names_of, training_case
from tapegrad._conformance.writing import compared
from tapegrad._files import write_folder
from tapegrad.errors import BrokenNet, FormatError, InputError
from tapegrad.networks.checking import check
from tapegrad.networks.network import Network, Node, Port

FORMAT = "tapegrad conformance kit 2"
INDEX = "kit.json"
PARTS = ("net", "inputs", "expected")
TRAINING = "training-"
FACTS = ("about", "bits", "shortfalls", "scale", "written", "rate")
"""What the index says of a network beside its nodes and sums."""
NODE = ("name", "operation", "reads", "arrays", "settings", "about")
AGAIN = "Make it again: tapegrad conformance make -o FOLDER"


@dataclass(frozen=True)
class Member:
    """One network of a kit."""

    network: Network
    about: str
    inputs: dict[str, NDArray[Any]]
    expected: dict[str, NDArray[np.float64]]
    bits: int
    """What its most demanding sum needs."""
    shortfalls: dict[str, str]
    """For each format why it does not owe the exact result; empty where it does."""
    scale: int = 1
    """In bytes all values are times this."""
    written: bool = True
    """Whether matrices are written out."""
    rate: float = 0.0
    """Of a network that is trained; 0 where none is."""

    @property
    def name(self) -> str:
        """Of the network."""
        return self.network.name

    @property
    def names(self) -> list[str]:
        """What is compared, in order."""
        if self.rate:
            return names_of(self.network, len(self.inputs["rows"]))
        return compared(self.network)

    @property
    def units(self) -> dict[str, str]:
        """What the units of a layer are for."""
        own = {node.name: node.about for node in self.network.nodes}
        for node in self.network.nodes:
            if node.operation == "relu":
                own[node.name] = own.get(node.reads[0], "")
        return own

    def form(self, name: str) -> Form:
        """The network in a format."""
        return Form(self.network, name, self.scale if name == INT8 else 1, self.written)

    def training(self, name: str) -> Training:
        """The steps of a network that is trained."""
        return Training(self.form(name), self.rate, self.inputs["rows"], self.inputs["labels"])


def member(name: str) -> Member:
    """A network, with what its layers must give."""
    if name.startswith(TRAINING):
        own = name.removeprefix(TRAINING)
        case, rate, expected = training_case(own)
        shortfalls = {each: "" if each == own else f"its weights are chosen for {own}" for each in NAMES}
        network = replace(case.network, name=name)
        return Member(network, ABOUT[TRAINING], case.inputs, expected, 0, shortfalls, 1, False, rate)
    case = CASES[name]()
    network, (last,) = replace(case.network, name=name), case.network.outputs.values()
    found = evaluated(network, case.inputs)
    if not np.array_equal(found.values[last], case.answer):
        raise BrokenNet(f"the network {name!r} does not give what its source does")
    shortfalls = {each: shortfall(network, found, case.inputs, each) for each in NAMES}
    scale = 1 if shortfalls[INT8] else scale_of(network, case.inputs)
    expected = {own: found.values[own] for own in compared(network)}
    return Member(network, ABOUT[name], case.inputs, expected, found.bits, shortfalls, scale, case.written)


def write_kit(folder: Path, names: Iterable[str] = NET_NAMES, *, onnx: bool | None = None) -> list[Member]:
    """Makes a kit, in one step. ONNX models are added where the package is there, or as asked for."""
    onnx = find_spec("onnx") is not None if onnx is None else onnx
    files: dict[str, bytes] = {}
    members, listed = [member(name) for name in names], []
    for own in members:
        parts = {"net": own.network.arrays, "inputs": own.inputs, "expected": own.expected}
        made = {f"{own.name}.{part}.safetensors": _bytes(parts[part]) for part in PARTS}
        if onnx and not own.rate:
            made[f"{own.name}.onnx"] = _onnx(own)
        sums = {name: hashlib.sha256(content).hexdigest() for name, content in made.items()}
        facts = {name: getattr(own, name) for name in FACTS}
        listed.append({**described(own.network), **facts, "sha256": sums})
        files |= made
    index = {"format": FORMAT, "tapegrad": metadata.version("tapegrad"), "networks": listed}
    index["sha256"] = _index_sum(index)
    files[INDEX] = (json.dumps(index, indent=1) + "\n").encode()
    write_folder(folder, files)
    return members


def _bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def _onnx(own: Member) -> bytes:
    from tapegrad._conformance.runtimes.on_onnx import model_of  # an extra

    return model_of(own.form("float32"), own.names, own.inputs).SerializeToString()


def described(network: Network) -> dict[str, Any]:
    """A network without state in JSON: all but the arrays."""
    nodes = [{name: getattr(node, name) for name in NODE} for node in network.nodes]
    inputs = {name: {"shape": port.shape, "dtype": port.dtype} for name, port in network.inputs.items()}
    return {"name": network.name, "inputs": inputs, "nodes": nodes, "outputs": network.outputs}


def network_of(found: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Network:
    """The network again; what does not fit together is refused."""
    inputs = {name: Port(tuple(own["shape"]), own["dtype"]) for name, own in found["inputs"].items()}
    nodes = []
    for own in found["nodes"]:
        settings = {name: tuple(v) if isinstance(v, list) else v for name, v in own["settings"].items()}
        nodes.append(Node(**{**own, "reads": tuple(own["reads"]), "settings": settings}))
    network = Network(found["name"], inputs, {}, tuple(nodes), found["outputs"], arrays)
    check(network)
    return network


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
    try:
        return [
            _member(folder, own) for own in index["networks"] if names is None or own["name"] in set(names)
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FormatError(
            f"the index does not say what it must: {error!r}", where=str(path), advice=AGAIN
        ) from error


def _member(folder: Path, own: Mapping[str, Any]) -> Member:
    for name, wanted in own["sha256"].items():
        try:
            content = (folder / name).read_bytes()
        except OSError as error:
            raise FormatError(f"{name} is missing", where=str(folder), advice=AGAIN) from error
        if hashlib.sha256(content).hexdigest() != wanted:
            raise FormatError(f"{name} was altered", where=str(folder), advice=AGAIN)
    arrays, inputs, expected = (read_arrays(folder / f"{own['name']}.{part}.safetensors") for part in PARTS)
    network = network_of(own, arrays)
    if network.inputs.keys() <= inputs.keys():  # a file has its arrays in any order
        inputs = {name: inputs[name] for name in network.inputs}
    return Member(network, inputs=inputs, expected=expected, **{name: own[name] for name in FACTS})


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file in safetensors."""
    try:
        return load(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (SafetensorError, ValueError, KeyError) as error:
        raise FormatError(f"{path} is no file in safetensors: {error}") from error
