"""A script that asks a verifier, run by the Python that has it: `verifiers.py TOOL ONNX VNNLIB SECONDS FILE`.

It needs nothing of tapegrad. What is written is as in the competition: `sat`, `unsat` or `unknown`, then
`(X_0 VALUE)` and so on. A tool is imported by the function that asks it.
"""

import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from instance import read_instance, read_property

Answer = tuple[str, Any]
"""What is said, and the input that comes with it."""

_OUTPUT = re.compile(r"\(assert (\([<>]= Y_[^()]*\))\)")
_VALUE = re.compile(r"\(X_[0-9]+ (\S+)\)")


def marabou(onnx_path: str, vnnlib_path: str, seconds: float) -> Answer:
    """Marabou (maraboupy): its own reader of ONNX, its own search, one thread.

    Version 2.0.0 keeps on for good on some small instances, whatever its own time limit: whoever runs this
    has to end it, and SIGTERM does not."""
    from maraboupy import Marabou

    box, threshold = read_property(Path(vnnlib_path).read_text())
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


def neuralsat(onnx_path: str, vnnlib_path: str, seconds: float) -> Answer:
    """NeuralSAT (neuralsat), by its own script: attacks first, then bounds and clauses, on the processor.

    The package installs its modules under the name `src`, to be run from there. What it writes to its file of
    results is in the competition's form."""
    script = Path(str(metadata.distribution("neuralsat").locate_file("src/main.py"))).resolve()
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result"
        command = [sys.executable, str(script), "--net", onnx_path, "--spec", vnnlib_path]
        command += ["--timeout", str(seconds), "--device", "cpu", "--verbosity", "0"]
        command += ["--result_file", str(result), "--export_cex"]
        done = subprocess.run(command, cwd=script.parent, capture_output=True, text=True)
        if not result.exists():
            sys.exit(done.stderr[-2000:] or f"neuralsat ended with code {done.returncode} and no result")
        text = result.read_text()
    answer = text.split()[0]
    if answer not in ("sat", "unsat"):
        return ("timeout" if answer == "timeout" else "unknown"), None
    return answer, [float(own) for own in _VALUE.findall(text)] if answer == "sat" else None


def never2(onnx_path: str, vnnlib_path: str, seconds: float) -> Answer:
    """NeVer2 (pynever) by its algorithm SSBP, star sets with bounds propagation, that of VNN-COMP 2024."""
    from pynever.strategies.verification.algorithms import SSBPVerification
    from pynever.strategies.verification.parameters import SSBPVerificationParameters

    verifier = SSBPVerification(SSBPVerificationParameters(timeout=max(1, int(seconds))))
    return _by_never2(verifier, onnx_path, vnnlib_path)


def never2_sslp(onnx_path: str, vnnlib_path: str, seconds: float) -> Answer:
    """NeVer2 by the older SSLP, star sets with linear programs."""
    from pynever.strategies.verification.algorithms import SSLPVerification
    from pynever.strategies.verification.parameters import SSLPVerificationParameters

    return _by_never2(SSLPVerification(SSLPVerificationParameters("complete")), onnx_path, vnnlib_path)


def _by_never2(verifier: Any, onnx_path: str, vnnlib_path: str) -> Answer:
    """It says whether the network is safe, and gives an input where it is not. Its parser takes an output
    constraint only as a disjunction of conjunctions, so the property is written that way for it: the same
    property."""
    from pynever.strategies.conversion.converters.onnx import ONNXConverter
    from pynever.strategies.conversion.representation import load_network_path
    from pynever.strategies.verification.properties import VnnLibProperty

    network = ONNXConverter().to_neural_network(load_network_path(onnx_path))
    with open(vnnlib_path) as file, tempfile.NamedTemporaryFile("w", suffix=".vnnlib") as rewritten:
        rewritten.write(_OUTPUT.sub(r"(assert (or (and \1)))", file.read()))
        rewritten.flush()
        wanted = VnnLibProperty(rewritten.name)
    safe, witness = verifier.verify(network, wanted)
    if safe:
        return "unsat", None
    return ("unknown", None) if witness is None else ("sat", witness.flatten().tolist())


def auto_lirpa(onnx_path: str, vnnlib_path: str, seconds: float) -> Answer:
    """auto_LiRPA: bounds of the output, by intervals and by CROWN, and nothing of ours on top. Bounds alone
    can prove that there is no counterexample, if the least upper bound is under the threshold, and never that
    there is one: the other answer is `unknown`."""
    import torch
    from auto_LiRPA import BoundedModule, BoundedTensor, PerturbationLpNorm

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


ASKED: dict[str, Callable[[str, str, float], Answer]] = {
    "marabou": marabou,
    "neuralsat": neuralsat,
    "never2": never2,
    "never2-sslp": never2_sslp,
    "auto_lirpa": auto_lirpa,
}


def main() -> None:
    """Asks a verifier, and writes what it says."""
    tool, onnx_path, vnnlib_path, seconds, result = sys.argv[1:6]
    warnings.simplefilter("ignore")
    answer, witness = ASKED[tool](onnx_path, vnnlib_path, float(seconds))
    lines = [answer]
    if witness is not None:
        lines += [f"(X_{place} {float(value)!r})" for place, value in enumerate(witness)]
    Path(result).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
