"""NeVer2 (pynever) by its algorithm SSBP, star sets with bounds propagation, that of VNN-COMP 2024; `--sslp`
for the older SSLP, star sets with linear programs.

Its parser takes an output constraint only as a disjunction of conjunctions, so that the property is written
that way for it: the same property.
"""

import re
import sys
import tempfile
from typing import Any

from instance import answered
from pynever.strategies.conversion.converters.onnx import ONNXConverter
from pynever.strategies.conversion.representation import load_network_path
from pynever.strategies.verification.algorithms import SSBPVerification, SSLPVerification
from pynever.strategies.verification.parameters import SSBPVerificationParameters, SSLPVerificationParameters
from pynever.strategies.verification.properties import VnnLibProperty

OUTPUT = re.compile(r"\(assert (\([<>]= Y_[^()]*\))\)")


def solve(onnx_path: str, vnnlib_path: str, seconds: float) -> tuple[str, Any]:
    """NeVer2 says whether the network is safe, and gives an input where it is not."""
    network = ONNXConverter().to_neural_network(load_network_path(onnx_path))
    with open(vnnlib_path) as file, tempfile.NamedTemporaryFile("w", suffix=".vnnlib") as rewritten:
        rewritten.write(OUTPUT.sub(r"(assert (or (and \1)))", file.read()))
        rewritten.flush()
        wanted = VnnLibProperty(rewritten.name)
    if "--sslp" in sys.argv:
        verifier = SSLPVerification(SSLPVerificationParameters("complete"))
    else:
        verifier = SSBPVerification(SSBPVerificationParameters(timeout=max(1, int(seconds))))
    safe, witness = verifier.verify(network, wanted)
    if safe:
        return "unsat", None
    return ("unknown", None) if witness is None else ("sat", witness.flatten().tolist())


answered(solve)
