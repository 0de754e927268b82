"""The runtimes that read ONNX models, on the processor: onnxruntime at each of its levels of optimisation,
OpenVINO as it comes, asked for accuracy and allowed bfloat16, and tract. Each is imported by its function."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tapegrad._conformance.formats import INT8, Form, dtype_of
from tapegrad._conformance.runtimes.base import Patches, Program, Runtime, Unsupported
from tapegrad._conformance.writing import sized
from tapegrad.networks.backends.onnx import Onnx
from tapegrad.networks.checking import Shape
from tapegrad.networks.network import Node
from tapegrad.networks.onnx_writer import OPSET, GraphWriter

Arrays = Mapping[str, NDArray[Any]]
Loaded = Callable[[Arrays], Sequence[Any]]
"""From inputs to the layers that are wanted, in their order."""
ACCURACY, BFLOAT16 = {"EXECUTION_MODE_HINT": "ACCURACY"}, {"INFERENCE_PRECISION_HINT": "bf16"}
OPENVINO_OPTIONS = {"default": {}, "accuracy": ACCURACY, "bf16-hint": BFLOAT16}


class OnnxRuntime(Runtime, Onnx):
    """Maps as products of matrices or by what each unit reads, and convolutions. In bytes, products are those
    of `MatMulInteger` and `ConvInteger`."""

    def __init__(self, form: Form, inputs: Arrays, write: GraphWriter) -> None:
        super().__init__(sized(form.network, inputs), write)
        self.form, self.network, kind = form, form.cast, dtype_of(form.format).name
        self.shapes = {name: Shape(own.sizes, kind) for name, own in self.shapes.items()}

    def affine(self, node: Node, x: Any) -> str:
        write, bytewise, name = self.write, self.form.format == INT8, node.name
        width, bias = self.shapes[node.reads[0]].width, self.network.array(node, "bias")
        if isinstance(x, Patches):
            channels = self.shapes[x.node.reads[0]].width
            assert isinstance(channels, int)
            first = write.add("Unsqueeze", write.add("Transpose", x.grid, perm=[2, 0, 1]), write.whole(0))
            kernel = write.constant(self.kernel(node, channels), f"{name}.kernel")
            more = [] if bytewise else [write.constant(bias, f"{name}.bias")]
            z = write.add("ConvInteger" if bytewise else "Conv", first, kernel, *more, pads=[1] * 4)
            if bytewise:
                z = write.add("Add", z, write.constant(bias[:, None, None], f"{name}.bias"))
            z = write.add("Transpose", write.add("Squeeze", z, write.whole(0)), perm=[1, 2, 0])
        else:
            if self.form.written:
                assert isinstance(width, int)
                weight = write.constant(self.form.matrix(node, width), f"{name}.weight")
                z = write.add("MatMulInteger" if bytewise else "MatMul", x, weight)
            else:
                reads, weight = self.form.gathers(node)[0], self.form.read_weights(node)
                z = write.add("Gather", x, write.constant(reads, f"{name}.reads"), axis=-1)
                if bytewise:
                    z, weight = self._cast(z, "int32"), weight.astype(np.int32)
                z = write.add("Mul", z, write.constant(weight, f"{name}.weight"))
                z = write.add("ReduceSum", z, write.whole(len(self.shapes[name].sizes)), keepdims=0)
            z = write.add("Add", z, write.constant(bias, f"{name}.bias"))
        return self._cast(z, "int8") if bytewise else z


def model_of(form: Form, wanted: Sequence[str], inputs: Arrays) -> onnx.ModelProto:
    """A model that gives the layers that are wanted, for inputs of these sizes."""
    write = GraphWriter(prefix="tapegrad/")
    own, kept = OnnxRuntime(form, inputs, write), set(wanted)
    kind = dtype_of(form.format)
    given = {name: write.input(name, kind, array.shape) for name, array in inputs.items()}
    for node, value in own.values(given):
        if node.name in kept:
            write.output(node.name, value, kind, own.shapes[node.name].sizes)
    try:
        return write.model(form.network.name, {})
    except onnx.shape_inference.InferenceError as error:
        raise Unsupported(f"ONNX, operators of version {OPSET}: {error}") from error


def _program(form: Form, wanted: Sequence[str], load: Callable[[bytes], Loaded]) -> Program:
    """A model is made and loaded at the first run, when the sizes of the inputs are known."""
    loaded: dict[tuple[int, ...], Loaded] = {}

    def program(inputs: Arrays) -> dict[str, NDArray[Any]]:
        sizes = tuple(len(own) for own in inputs.values())
        if sizes not in loaded:
            loaded[sizes] = load(model_of(form, wanted, inputs).SerializeToString())
        return dict(zip(wanted, map(np.asarray, loaded[sizes](inputs)), strict=True))

    return program


def _refused(error: Exception, *signs: str) -> Unsupported | Exception:
    """What a runtime says it does not have, as such; any other error as it is."""
    said = str(error)
    return Unsupported(said.splitlines()[0]) if any(sign in said for sign in signs) else error


def onnxruntime(form: Form, level: str, wanted: Sequence[str]) -> Program:
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

    return _program(form, wanted, load)


def openvino(form: Form, level: str, wanted: Sequence[str]) -> Program:
    """The network in OpenVINO."""
    import openvino as runtime

    core, options = runtime.Core(), {"INFERENCE_NUM_THREADS": 1, **OPENVINO_OPTIONS[level]}

    def as_it_is(found: Any) -> NDArray[Any]:
        """Values in bfloat16 come as what NumPy takes for float16."""
        return found.view(dtype_of(form.format)) if form.format == "bfloat16" else found

    def load(model: bytes) -> Loaded:
        compiled = core.compile_model(core.read_model(model), "CPU", options)

        def run(inputs: Arrays) -> list[NDArray[Any]]:
            found = compiled(dict(inputs))
            return [as_it_is(found[layer]) for layer in wanted]

        return run

    return _program(form, wanted, load)


def tract(form: Form, level: str, wanted: Sequence[str]) -> Program:
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
        return lambda inputs: [
            own.to_numpy() for own in runnable.run([inputs[key] for key in form.network.inputs])
        ]

    return _program(form, wanted, load)
