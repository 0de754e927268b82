"""Marabou (maraboupy): its own reader of ONNX, its own search, one thread.

Version 2.0.0 keeps on for good on some small instances, whatever its own time limit: whoever runs this has to
end it, and SIGTERM does not.
"""

import warnings
from typing import Any

from instance import answered, read_property

warnings.simplefilter("ignore")

from maraboupy import Marabou  # noqa: E402


def solve(onnx_path: str, vnnlib_path: str, seconds: float) -> tuple[str, Any]:
    """Marabou's answer, and the input that it found."""
    with open(vnnlib_path) as file:
        box, threshold = read_property(file.read())
    network = Marabou.read_onnx(onnx_path)
    inputs = network.inputVars[0].flatten()
    for variable, (low, high) in zip(inputs, box, strict=True):
        network.setLowerBound(variable, float(low))
        network.setUpperBound(variable, float(high))
    network.setLowerBound(network.outputVars[0].flatten()[0], float(threshold))
    options = Marabou.createOptions(verbosity=0, timeoutInSeconds=max(1, int(seconds)))
    found, values, _ = network.solve(verbose=False, options=options)
    if found == "sat":
        return "sat", [values[variable] for variable in inputs]
    return ("unsat" if found == "unsat" else "unknown"), None


answered(solve)
