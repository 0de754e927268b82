"""ncnn on the processor, with the storage in half precision that it prefers, and without."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ncnn
import numpy as np
from numpy.typing import NDArray

from tapegrad._conformance.formats import Form
from tapegrad._conformance.runtimes.base import Patches, Program, Runtime, Unsupported
from tapegrad._conformance.writing import fused
from tapegrad.networks.checking import check
from tapegrad.networks.network import Node

_native: Any = ncnn  # which declares nothing of what it has


class Blob(NamedTuple):
    """A value of ncnn, whose images have their channels first."""

    name: str
    turned: bool = False
    """Whether the network's own value has them last."""


class Writer(Runtime):
    """Grows ncnn's own form of a network, a line for each layer, and the content of its second file."""

    def __init__(self, form: Form) -> None:
        super().__init__(form.network)
        self.form, self.lines, self.content = form, dict[str, str](), bytearray()
        self._shapes, self._fused, self._read = check(form.network), fused(form.network), set[str]()

    def _layer(self, kind: str, node: Node, x: Blob, parameters: str = "") -> Blob:
        # A value that two layers read would need a copy.
        if x.name in self._read:
            raise Unsupported("this form of ncnn has no value that two layers read")
        self._read.add(x.name)
        self.lines[node.name] = f"{kind} {node.name} 1 1 {x.name} {node.name}{parameters}"
        return Blob(node.name, x.turned)

    def affine(self, node: Node, x: Any) -> Blob:
        bias = self.form.cast.array(node, "bias")
        width, size = self._shapes[node.reads[0]].width, 1
        assert isinstance(width, int)
        if isinstance(x, Patches):
            x, size = x.grid, 3
        weight = self.form.matrix(node, width).T
        self.content += bytes(4)  # what follows is float32
        self.content += np.ascontiguousarray(weight).tobytes() + bias.tobytes()
        if x.turned:
            own = f" 0={len(bias)} 1={size} 4={size // 2} 5=1 6={weight.size}"
            return self._layer("Convolution", node, x, own)
        return self._layer("InnerProduct", node, x, f" 0={len(bias)} 1=1 2={weight.size}")

    def relu(self, node: Node, x: Blob) -> Blob:
        if node.reads[0] in self._fused and x.name in self.lines:
            self.lines[x.name] += " 9=1"
            return x
        return self._layer("ReLU", node, x)

    def transpose(self, node: Node, x: Blob) -> Blob:
        if node.list("order") != ((2, 0, 1) if x.turned else (1, 2, 0)):
            raise Unsupported("this form of ncnn has no such transpose")
        return Blob(x.name, not x.turned)


def prepare(form: Form, level: str, wanted: Sequence[str]) -> Program:
    """The network, ready to run, a pattern at a time."""
    if not form.written or len(form.network.inputs) != 1:
        raise Unsupported("this form of ncnn has one input, and matrices")
    ((given, port),) = form.network.inputs.items()
    writer = Writer(form)
    blobs = dict(zip(wanted, writer.wanted({given: Blob(given)}, wanted), strict=True))
    net = _native.Net()
    net.opt.num_threads = 1
    if level == "plain":
        for option in vars(type(net.opt)):
            if option.startswith("use_") and any(
                own in option for own in ("fp16", "bf16", "int8", "winograd")
            ):
                setattr(net.opt, option, False)
    lines = [f"Input {given} 0 1 {given}", *writer.lines.values()]
    with tempfile.TemporaryDirectory() as folder:
        param, weights = Path(folder) / "net.param", Path(folder) / "net.bin"
        param.write_text(f"7767517\n{len(lines)} {len(lines)}\n" + "\n".join(lines) + "\n")
        weights.write_bytes(writer.content)
        if net.load_param(str(param)) or net.load_model(str(weights)):
            raise Unsupported("ncnn cannot read the network")
    single = len(port.shape) == 3

    def program(inputs: Any) -> dict[str, NDArray[Any]]:
        rows = []
        for pattern in inputs[given][None] if single else inputs[given]:
            extractor = net.create_extractor()
            extractor.input(given, _native.Mat(np.ascontiguousarray(pattern)))
            found = {layer: np.array(extractor.extract(own.name)[1]) for layer, own in blobs.items()}
            rows.append({k: np.moveaxis(v, 0, -1) if blobs[k].turned else v for k, v in found.items()})
        return rows[0] if single else {layer: np.stack([row[layer] for row in rows]) for layer in wanted}

    return program
