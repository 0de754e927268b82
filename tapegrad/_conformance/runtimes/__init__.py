"""Runtimes: for each the package that it comes in, and its levels: settings under which it may compute
differently. Their modules import them, and are imported only in a process of their own."""

import importlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Runtime:
    """One runtime."""

    package: str
    """What has to be installed, under its name on PyPI."""
    module: str
    """Where it is; a function of another name than `prepare` stands behind a colon."""
    levels: tuple[str, ...]
    formats: tuple[str, ...] = ("float64", "float32", "float16", "bfloat16", "int8")
    trains: bool = False

    def prepare(self) -> Any:
        """What makes a network ready to run in it; the runtime is imported by this."""
        return getattr(self.imported(), self.module.partition(":")[2] or "prepare")

    def imported(self) -> ModuleType:
        """Its module."""
        return importlib.import_module(f"{__name__}.{self.module.partition(':')[0]}")


RUNTIMES = {
    "numpy": Runtime("numpy", "on_numpy", ("default",), trains=True),
    "jax": Runtime("jax", "on_jax", ("highest", "default", "eager", "tf32"), trains=True),
    "torch": Runtime("torch", "on_torch", ("eager", "compile", "eager-tf32", "default"), trains=True),
    "onnxruntime": Runtime("onnxruntime", "on_onnx:onnxruntime", ("disabled", "basic", "extended", "full")),
    "openvino": Runtime("openvino", "on_onnx:openvino", ("default", "accuracy", "bf16-hint")),
    "tract": Runtime("tract", "on_onnx:tract", ("default",)),
    "tinygrad": Runtime("tinygrad", "on_tinygrad", ("default", "unoptimised"), trains=True),
    "litert": Runtime(
        "ai-edge-litert", "on_litert", ("xnnpack", "builtin", "reference"), ("float32", "int8")
    ),
    "ncnn": Runtime("ncnn", "on_ncnn", ("default", "plain"), ("float32",)),
}
