"""One script for each verifier, run by the Python that has it: `ADAPTER.py ONNX VNNLIB SECONDS RESULT`. None
of them needs this package. RESULT is as in the competition: `sat`, `unsat` or `unknown`, then `(X_0 VALUE)`
and so on."""
