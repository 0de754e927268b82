"""onnxruntime on the processor, at each of its levels of optimisation."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from tapegrad._conformance.graph import Graph
from tapegrad._conformance.runtimes.base import Program, Unsupported
from tapegrad._conformance.runtimes.onnx_models import model_of

LEVELS = {
    "disabled": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "full": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}


def prepare(graph: Graph, name: str, level: str, wanted: Sequence[str]) -> Program:
    """The network, ready to run; a session is made at the first run, when the sizes are known."""
    sessions: dict[tuple[int, ...], onnxruntime.InferenceSession] = {}
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.intra_op_num_threads = 1
    options.log_severity_level = 4

    def program(inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        sizes = tuple(len(own) for own in inputs.values())
        if sizes not in sessions:
            model = model_of(graph, name, wanted, dict(zip(inputs, sizes, strict=True)))
            try:
                sessions[sizes] = onnxruntime.InferenceSession(
                    model.SerializeToString(), options, providers=["CPUExecutionProvider"]
                )
            except Exception as error:
                if "NOT_IMPLEMENTED" in str(error) or "INVALID_GRAPH" in str(error):
                    raise Unsupported(str(error).splitlines()[0]) from error
                raise
        found = sessions[sizes].run(list(wanted), dict(inputs))
        return dict(zip(wanted, map(np.asarray, found), strict=True))

    return program
