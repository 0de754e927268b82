"""The all-layer margin of a net, bracketed: lower bounds that are proved, an upper bound that is found."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import Compiled
from tapegrad.circuits.model import Circuit
from tapegrad.errors import Refused
from tapegrad.targets.relu import ReluNet
from tapegrad.targets.transformer import TransformerNet
from tapegrad_papers.wei.attack import attack
from tapegrad_papers.wei.blocks import Chain
from tapegrad_papers.wei.bounds import MarginConstants, layerwise_bound, margin_constants, uncorrected_log10
from tapegrad_papers.wei.chains import relu_chain, transformer_chain
from tapegrad_papers.wei.problems import Problem, relu_problem, transformer_problem

MOST_PATTERNS = 64


@dataclass(frozen=True)
class Margins:
    """What is known of the all-layer margin (2.1). Lower bounds hold for every input, the upper bound for the
    input attacked. Without corrections `constants` and `layerwise` are None: no theorem gives them. With
    softmax what is said of the net without corrections is None: its errors add up even without noise."""

    constants: MarginConstants | None
    layerwise: float | None
    """The induction of Theorem D.6 with each layer's own constants: larger, and also proved."""
    uncorrected_log10: float | None
    """The decimal logarithm of the product-of-Lipschitz-constants bound for the net without corrections."""
    upper: float | None
    upper_without_corrections: float | None

    @property
    def lower(self) -> float:
        """The best lower bound that is proved for this net."""
        if self.layerwise is not None:
            return self.layerwise
        assert self.uncorrected_log10 is not None
        return 10**self.uncorrected_log10

    def to_json(self) -> dict[str, Any]:
        """As a plain dictionary."""
        return {
            "constants": None if self.constants is None else self.constants.to_json(),
            "theorem_d_6": None if self.constants is None else self.constants.bound,
            "layerwise": self.layerwise,
            "uncorrected_log10": self.uncorrected_log10,
            "lower": self.lower,
            "upper": self.upper,
            "upper_without_corrections": self.upper_without_corrections,
        }

    def __str__(self) -> str:
        bare = "10^{:.1f} (product of Lipschitz constants, without corrections)"
        bare = "" if self.uncorrected_log10 is None else bare.format(self.uncorrected_log10)
        if self.constants is None or self.layerwise is None:
            lines = [
                f"lower bound  {bare}",
                "             no theorem gives a better one: the net has no corrections",
            ]
        else:
            lines = [
                *("             " + line for line in str(self.constants).splitlines()),
                f"lower bound  {self.constants.bound:.6g} (Theorem D.6)",
                f"             {self.layerwise:.6g} (the same argument, layer by layer)",
                *([f"             {bare}"] if bare else []),
            ]
        if self.upper is not None:
            lines.append(f"upper bound  {self.upper:.6g} (an attack flips a prediction)")
        if self.upper_without_corrections is not None and self.constants is not None:
            lines.append(f"             {self.upper_without_corrections:.6g} (without corrections)")
        return "\n".join(lines)


def chain_of(net: Any) -> Chain:
    """The net as appendix D sees it."""
    if isinstance(net, ReluNet):
        return relu_chain(net)
    if isinstance(net, TransformerNet):
        return transformer_chain(net)
    raise Refused("margins are defined for the targets relu and transformer", advice="Choose one of these.")


def problem_of(compiled: Compiled, *inputs: Any, corrections: bool = True) -> Problem:
    """The net on an input, as the user writes it, as a function of its parameters. A ReLU net has or has no
    corrections by the option it was compiled with; `corrections=False` takes them out of a transformer."""
    net = compiled.net
    if isinstance(net, ReluNet):
        return relu_problem(net, compiled.encode(compiled.source.start(*inputs)).bits)  # type: ignore[union-attr]
    if isinstance(net, TransformerNet):
        return transformer_problem(net, compiled.start(*inputs), corrections)
    raise Refused("margins are defined for the targets relu and transformer", advice="Choose one of these.")


def patterns(circuit: Circuit) -> NDArray[np.bool_]:
    """What a circuit is attacked on where no input is given: all patterns if they are few, or else some."""
    count = len(circuit.inputs)
    if 1 << count <= MOST_PATTERNS:
        return (np.arange(1 << count)[:, None] >> np.arange(count) & 1).astype(bool)
    return np.random.default_rng(0).integers(0, 2, (MOST_PATTERNS, count)).astype(bool)


def lower_bounds(net: Any) -> Margins:
    """Only what is proved; quick even for large nets."""
    chain = chain_of(net)
    constants, layerwise, soft = None, None, False
    if chain.correction is not None:
        constants, layerwise = margin_constants(chain), layerwise_bound(chain)
        soft = chain.correction.softness > 0
    return Margins(constants, layerwise, None if soft else uncorrected_log10(chain), None, None)


def all_layer_margins(compiled: Compiled, *inputs: Any) -> Margins:
    """The lower bounds, and upper bounds by attack on this input."""
    lower = lower_bounds(compiled.net)
    problem = problem_of(compiled, *inputs)
    upper, bare = attack(problem).radius, None
    if isinstance(compiled.net, TransformerNet) and lower.uncorrected_log10 is not None:
        bare = attack(problem_of(compiled, *inputs, corrections=False), start=1e-3).radius
    elif lower.constants is None:
        bare = upper
    return Margins(lower.constants, lower.layerwise, lower.uncorrected_log10, upper, bare)
