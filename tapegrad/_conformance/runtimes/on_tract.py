"""tract, from an ONNX model."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tract
from numpy.typing import NDArray

from tapegrad._conformance.graph import Graph
from tapegrad._conformance.runtimes.base import Program, Unsupported
from tapegrad._conformance.runtimes.onnx_models import model_of


def prepare(graph: Graph, name: str, level: str, wanted: Sequence[str]) -> Program:
    """The network, ready to run."""
    runnable = {}

    def program(inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        sizes = tuple(len(own) for own in inputs.values())
        if sizes not in runnable:
            model = model_of(graph, name, wanted, dict(zip(inputs, sizes, strict=True)))
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.onnx"
                path.write_bytes(model.SerializeToString())
                try:
                    runnable[sizes] = tract.onnx().load(str(path)).into_model().into_runnable()
                except tract.TractError as error:
                    if "Unknown DatumType" in str(error):
                        raise Unsupported(str(error).splitlines()[0]) from error
                    raise
        found = runnable[sizes].run([inputs[key] for key in graph.inputs])
        return dict(zip(wanted, (own.to_numpy() for own in found), strict=True))

    return program
