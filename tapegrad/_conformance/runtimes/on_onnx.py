"""The runtimes that read ONNX models, on the processor: onnxruntime at each of its levels of optimisation,
OpenVINO as it comes, asked for accuracy and allowed bfloat16, and tract. Each is imported by its function."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._conformance.graph import Graph
from tapegrad._conformance.runtimes.base import Program, Unsupported, dtype_of
from tapegrad._conformance.runtimes.onnx_models import model_of

Arrays = Mapping[str, NDArray[Any]]
Loaded = Callable[[Arrays], Sequence[Any]]
"""From inputs to the layers that are wanted, in their order."""
ACCURACY, BFLOAT16 = {"EXECUTION_MODE_HINT": "ACCURACY"}, {"INFERENCE_PRECISION_HINT": "bf16"}
OPENVINO_OPTIONS = {"default": {}, "accuracy": ACCURACY, "bf16-hint": BFLOAT16}


def _program(graph: Graph, name: str, wanted: Sequence[str], load: Callable[[bytes], Loaded]) -> Program:
    """A model is made and loaded at the first run, when the sizes of the inputs are known."""
    loaded: dict[tuple[int, ...], Loaded] = {}

    def program(inputs: Arrays) -> dict[str, NDArray[Any]]:
        sizes = tuple(len(own) for own in inputs.values())
        if sizes not in loaded:
            model = model_of(graph, name, wanted, dict(zip(inputs, sizes, strict=True)))
            loaded[sizes] = load(model.SerializeToString())
        return dict(zip(wanted, map(np.asarray, loaded[sizes](inputs)), strict=True))

    return program


def _refused(error: Exception, *signs: str) -> Unsupported | Exception:
    """What a runtime says it does not have, as such; any other error as it is."""
    said = str(error)
    return Unsupported(said.splitlines()[0]) if any(sign in said for sign in signs) else error


def onnxruntime(graph: Graph, name: str, level: str, wanted: Sequence[str]) -> Program:
    """The network in onnxruntime."""
    import onnxruntime as runtime

    levels = runtime.GraphOptimizationLevel
    options = runtime.SessionOptions()
    options.graph_optimization_level = {
        "disabled": levels.ORT_DISABLE_ALL,
        "basic": levels.ORT_ENABLE_BASIC,
        "extended": levels.ORT_ENABLE_EXTENDED,
        "full": levels.ORT_ENABLE_ALL,
    }[level]
    options.intra_op_num_threads, options.log_severity_level = 1, 4

    def load(model: bytes) -> Loaded:
        try:
            session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise _refused(error, "NOT_IMPLEMENTED", "INVALID_GRAPH") from error
        return lambda inputs: session.run(list(wanted), dict(inputs))

    return _program(graph, name, wanted, load)


def openvino(graph: Graph, name: str, level: str, wanted: Sequence[str]) -> Program:
    """The network in OpenVINO."""
    import openvino as runtime

    core, options = runtime.Core(), {"INFERENCE_NUM_THREADS": 1, **OPENVINO_OPTIONS[level]}

    def as_it_is(found: Any) -> NDArray[Any]:
        """Values in bfloat16 come as what NumPy takes for float16."""
        return found.view(dtype_of(name)) if name == "bfloat16" else found

    def load(model: bytes) -> Loaded:
        compiled = core.compile_model(core.read_model(model), "CPU", options)

        def run(inputs: Arrays) -> list[NDArray[Any]]:
            found = compiled(dict(inputs))
            return [as_it_is(found[layer]) for layer in wanted]

        return run

    return _program(graph, name, wanted, load)


def tract(graph: Graph, name: str, level: str, wanted: Sequence[str]) -> Program:
    """The network in tract."""
    import tract as runtime

    def load(model: bytes) -> Loaded:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(model)
            try:
                runnable = runtime.onnx().load(str(path)).into_model().into_runnable()
            except runtime.TractError as error:
                raise _refused(error, "Unknown DatumType") from error
        return lambda inputs: [own.to_numpy() for own in runnable.run([inputs[key] for key in graph.inputs])]

    return _program(graph, name, wanted, load)
