"""ncnn on the processor, with the storage in half precision that it prefers, and without."""

from collections.abc import Sequence
from typing import Any

import ncnn
import numpy as np
from numpy.typing import NDArray

from tapegrad._conformance.graph import Graph, Layer
from tapegrad._conformance.runtimes.base import Program, Unsupported

_native: Any = ncnn  # which declares nothing of what it has


def _described(layer: Layer, number: int) -> str:
    """A line of ncnn's own form of a network."""
    reads, shape = layer.reads[0], layer.weight.shape
    head = f"{layer.name} 1 1 {reads} {layer.name}"
    relu = " 9=1" if layer.relu else ""
    if layer.kind == "dense":
        return f"InnerProduct {head} 0={shape[1]} 1=1 2={layer.weight.size}{relu}"
    return f"Convolution {head} 0={shape[0]} 1={shape[-1]} 4={shape[-1] // 2} 5=1 6={layer.weight.size}{relu}"


def prepare(graph: Graph, name: str, level: str, wanted: Sequence[str]) -> Program:
    """The network, ready to run, a pattern at a time."""
    strange = {layer.kind for layer in graph.layers} - {"dense", "convolution"}
    if strange:
        raise Unsupported(f"this form of ncnn has no layer for {min(strange)!r}")
    net = _native.Net()
    net.opt.num_threads = 1
    if level == "plain":
        for option in vars(type(net.opt)):
            if option.startswith("use_") and any(
                own in option for own in ("fp16", "bf16", "int8", "winograd")
            ):
                setattr(net.opt, option, False)
    (given,) = graph.inputs
    # A value that two layers would read needs a copy in ncnn; here every layer reads the one before it.
    lines = [_described(layer, number) for number, layer in enumerate(graph.layers)]
    text = (
        f"7767517\n{len(lines) + 1} {len(lines) + 1}\nInput {given} 0 1 {given}\n" + "\n".join(lines) + "\n"
    )
    content = bytearray()
    for layer in graph.layers:
        weight = layer.weight.T if layer.kind == "dense" else layer.weight
        content += bytes(4)  # what follows is float32
        content += np.ascontiguousarray(weight, np.float32).tobytes()
        content += layer.arrays["bias"].astype(np.float32).tobytes()
    _loaded(net, text, bytes(content))

    def program(inputs: Any) -> dict[str, NDArray[Any]]:
        rows = []
        for pattern in inputs[given]:
            extractor = net.create_extractor()
            extractor.input(given, _native.Mat(np.ascontiguousarray(pattern)))
            rows.append([np.array(extractor.extract(layer)[1]) for layer in wanted])
        return {layer: np.stack(own) for layer, own in zip(wanted, zip(*rows, strict=True), strict=True)}

    return program


def _loaded(net: Any, text: str, content: bytes) -> None:
    """ncnn reads files."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        param, weights = Path(folder) / "net.param", Path(folder) / "net.bin"
        param.write_text(text)
        weights.write_bytes(content)
        if net.load_param(str(param)) or net.load_model(str(weights)):
            raise Unsupported("ncnn cannot read the network")
