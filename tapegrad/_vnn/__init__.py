"""Questions about ReLU networks whose answers are known, for verifiers of networks; and what these make of
them. Only names stand here, which the command line shows before anything is loaded."""

FAMILY_NAMES = ("factoring", "miter", "preimage", "sat", "robustness", "reachability")
TOOL_NAMES = ("marabou", "neuralsat", "never2", "never2-sslp", "auto_lirpa")
