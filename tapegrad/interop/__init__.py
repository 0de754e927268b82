"""Nets in other people's tools. Each folder needs one extra, so nothing is imported here: say
`from tapegrad.interop.pytorch import to_torch`, `.onnx import to_onnx`, `.lens import to_transformer_lens`
or `.decompile import decompile`."""
