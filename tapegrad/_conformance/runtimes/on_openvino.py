"""OpenVINO on the processor: as it comes, asked for accuracy, and allowed bfloat16."""

from collections.abc import Mapping, Sequence
from typing import Any

import openvino
from numpy.typing import NDArray

from tapegrad._conformance.graph import Graph
from tapegrad._conformance.runtimes.base import Program, dtype_of
from tapegrad._conformance.runtimes.onnx_models import model_of

LEVELS = {
    "default": {},
    "accuracy": {"EXECUTION_MODE_HINT": "ACCURACY"},
    "bf16-hint": {"INFERENCE_PRECISION_HINT": "bf16"},
}


def prepare(graph: Graph, name: str, level: str, wanted: Sequence[str]) -> Program:
    """The network, ready to run."""
    core, compiled = openvino.Core(), {}

    def program(inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        sizes = tuple(len(own) for own in inputs.values())
        if sizes not in compiled:
            model = model_of(graph, name, wanted, dict(zip(inputs, sizes, strict=True)))
            own = core.read_model(model.SerializeToString())
            compiled[sizes] = core.compile_model(own, "CPU", {"INFERENCE_NUM_THREADS": 1, **LEVELS[level]})
        found = compiled[sizes](dict(inputs))
        return {layer: _array(found[layer], name) for layer in wanted}

    return program


def _array(found: Any, name: str) -> NDArray[Any]:
    """Values in bfloat16 come as what NumPy takes for float16."""
    return found.view(dtype_of(name)) if name == "bfloat16" else found
