"""What evaluates networks: JAX (the definition, differentiable), NumPy and numba (plain, and fast), PyTorch,
ONNX, and intervals of exact rationals under rounding."""
