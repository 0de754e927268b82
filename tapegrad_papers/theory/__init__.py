"""The theory of Wei, Chen and Ma as tools: margins, sample complexity and sizes of concrete nets."""

from tapegrad_papers.theory.attack import Attack, attack
from tapegrad_papers.theory.claim_3_5 import ChainMargins, claim_3_5, plot_claim_3_5
from tapegrad_papers.theory.layerwise import layerwise_bound, uncorrected_log10
from tapegrad_papers.theory.margin_constants import MarginConstants, constants_at, margin_constants
from tapegrad_papers.theory.margins import (
    Margins,
    all_layer_margins,
    chain_of,
    lower_bounds,
    patterns,
    problem_of,
)
from tapegrad_papers.theory.perturbation import PerturbationReport, perturbation_test
from tapegrad_papers.theory.sample_complexity import (
    SampleComplexity,
    corollary_a_1,
    lemma_2_3,
    rademacher_bound,
    surrogate_loss,
)
from tapegrad_papers.theory.theorems import (
    WidthRow,
    relu_norm,
    theorem_3_1,
    theorem_4_1,
    transformer_norm,
    width_rows,
)
from tapegrad_papers.theory.transformer_sizes import SizeRow, size_table, transformer_sizes

__all__ = [
    "Attack",
    "ChainMargins",
    "MarginConstants",
    "Margins",
    "PerturbationReport",
    "SampleComplexity",
    "SizeRow",
    "WidthRow",
    "all_layer_margins",
    "attack",
    "chain_of",
    "claim_3_5",
    "constants_at",
    "corollary_a_1",
    "layerwise_bound",
    "lemma_2_3",
    "lower_bounds",
    "margin_constants",
    "patterns",
    "perturbation_test",
    "plot_claim_3_5",
    "problem_of",
    "rademacher_bound",
    "relu_norm",
    "size_table",
    "surrogate_loss",
    "theorem_3_1",
    "theorem_4_1",
    "transformer_norm",
    "transformer_sizes",
    "uncorrected_log10",
    "width_rows",
]
