"""Nets as ONNX models (extra `onnx`)."""

from tapegrad.interop.onnx.convert import to_onnx

__all__ = ["to_onnx"]
