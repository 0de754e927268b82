"""Networks with one right answer, for runtimes: what each layer must give, to the bit, and a reader that says
where a runtime went wrong first. Only names stand here, which the command line shows before anything is
loaded."""

RUNTIME_NAMES = ("numpy", "jax", "torch", "onnxruntime", "openvino", "tract", "tinygrad", "litert", "ncnn")
FORMAT_NAMES = ("float64", "float32", "float16", "bfloat16", "int8")
NET_NAMES = (
    "adder",
    "adder-ternary",
    "sha256",
    "sha256-compact",
    "number",
    "convolution",
    "attention",
    "clock",
    "program",
    "training-float64",
    "training-float32",
)
