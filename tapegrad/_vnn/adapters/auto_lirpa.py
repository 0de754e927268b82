"""auto_LiRPA: bounds of the output, by intervals and by CROWN, and nothing of ours on top. Bounds alone can
prove that there is no counterexample, and never that there is one: the other answer is `unknown`."""

import warnings
from typing import Any

warnings.simplefilter("ignore")

import torch  # noqa: E402
from auto_LiRPA import BoundedModule, BoundedTensor, PerturbationLpNorm  # noqa: E402
from instance import answered, read_instance  # noqa: E402


def solve(onnx_path: str, vnnlib_path: str, seconds: float) -> tuple[str, Any]:
    """Unsat, if the least upper bound is under the threshold."""
    instance = read_instance(onnx_path, vnnlib_path)
    parts: list[torch.nn.Module] = []
    for weight, bias, relu in instance.layers:
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight.data, linear.bias.data = torch.tensor(weight.copy()), torch.tensor(bias.copy())
        parts += [linear, torch.nn.ReLU()] if relu else [linear]
    low, high = (torch.tensor([[float(own[side]) for own in instance.box]]) for side in (0, 1))
    bounded = BoundedModule(torch.nn.Sequential(*parts).eval(), low)
    region = BoundedTensor((low + high) / 2, PerturbationLpNorm(norm=float("inf"), x_L=low, x_U=high))
    for method in ("IBP", "CROWN"):
        upper = bounded.compute_bounds(x=(region,), method=method, bound_lower=False)[1]
        if upper.item() < float(instance.threshold):
            return "unsat", None
    return "unknown", None


answered(solve)
