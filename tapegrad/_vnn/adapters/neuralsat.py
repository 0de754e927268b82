"""NeuralSAT (neuralsat), by its own script: attacks first, then bounds and clauses, on the processor.

The package installs its modules under the name `src`, to be run from there.
"""

import re
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from instance import answered

VALUE = re.compile(r"\(X_[0-9]+ (\S+)\)")


def solve(onnx_path: str, vnnlib_path: str, seconds: float) -> tuple[str, Any]:
    """What it writes to its file of results is in the competition's form."""
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
    return answer, [float(own) for own in VALUE.findall(text)] if answer == "sat" else None


answered(solve)
