"""Runtimes: for each the package that it comes in, and its levels: settings under which it may compute
differently. Their modules import them, and are imported only in a process of their own."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Runtime:
    """One runtime."""

    package: str
    """What has to be installed, under its name on PyPI."""
    module: str
    levels: tuple[str, ...]
    formats: tuple[str, ...] = ("float64", "float32", "float16", "bfloat16", "int8")
    trains: bool = False


RUNTIMES = {
    "numpy": Runtime("numpy", "on_numpy", ("default",), trains=True),
    "jax": Runtime("jax", "on_jax", ("highest", "default", "eager", "tf32"), trains=True),
    "torch": Runtime("torch", "on_torch", ("eager", "compile", "eager-tf32", "default"), trains=True),
    "onnxruntime": Runtime("onnxruntime", "on_onnxruntime", ("disabled", "basic", "extended", "full")),
    "openvino": Runtime("openvino", "on_openvino", ("default", "accuracy", "bf16-hint")),
    "tract": Runtime("tract", "on_tract", ("default",)),
    "tinygrad": Runtime("tinygrad", "on_tinygrad", ("default", "unoptimised"), trains=True),
    "litert": Runtime(
        "ai-edge-litert", "on_litert", ("xnnpack", "builtin", "reference"), ("float32", "int8")
    ),
    "ncnn": Runtime("ncnn", "on_ncnn", ("default", "plain"), ("float32",)),
}
