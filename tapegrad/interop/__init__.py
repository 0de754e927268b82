"""Networks in other people's tools. Each needs an extra, so nothing is imported here: `tapegrad.to_torch` and
`tapegrad.to_onnx` import theirs when called, `.huggingface` has `files`, `.decompile` has `decompile`.
"""
