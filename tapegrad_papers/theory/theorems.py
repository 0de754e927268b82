"""Theorems 3.1 and 4.1 as functions from a concrete net to numbers, and what grows with what."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from tapegrad.errors import InputError
from tapegrad.targets.relu import ReluNet
from tapegrad.targets.transformer import TransformerNet
from tapegrad.targets.transformer.layers import parameter_norm
from tapegrad_papers.theory.margin_constants import margin_constants
from tapegrad_papers.theory.relu_chain import relu_chain
from tapegrad_papers.theory.sample_complexity import SampleComplexity, lemma_2_3
from tapegrad_papers.theory.transformer_chain import transformer_chain


def relu_norm(net: ReluNet) -> float:
    """alpha: the 1-norm of all weights and biases. Padding adds nothing."""
    return float(np.abs(np.asarray(net.weights, float)).sum() + np.abs(np.asarray(net.biases, float)).sum())


def transformer_norm(net: TransformerNet) -> float:
    """alpha: the 1-norm of all layers, h_0, E and theta_cls."""
    own = sum(float(np.abs(array).sum()) for array in (net.h_0, net.E, net.theta_cls))
    return own + sum(parameter_norm(layer) for layer in net.layers)


def relu_parameters(net: ReluNet, width: int) -> int:
    """p for the class `F_{w,d}`: W_0 is w x m, then d - 1 times w x w, a row for each output; biases."""
    inputs, outputs, depth = len(net.input_names), len(net.output_names), net.depth
    return width * inputs + (depth - 1) * width * width + outputs * width + depth * width + outputs


def transformer_parameters(width: int, depth: int, symbols: int) -> int:
    """p for the class `F_{w,d,T}`: in each layer two attentions of three w x w matrices, biases, null key and
    null value, and three ReLU layers, the middle one of width 2 w; and h_0, E, theta_cls. It does not depend
    on T: all decoder steps share their weights."""
    attention = 3 * (width * width + width) + 2 * width
    feed_forward = (width * width + width) + (2 * width * width + 2 * width) + (2 * width * width + width)
    return depth * (2 * attention + feed_forward) + (2 + symbols) * width


def theorem_3_1(net: ReluNet, epsilon: float = 0.1, width: int | None = None) -> SampleComplexity:
    """Samples that suffice to learn what the net computes, within all nets of this width, depth and norm."""
    width = _at_least(net.width, width)
    gamma = margin_constants(relu_chain(net)).bound
    return lemma_2_3(relu_norm(net), gamma, relu_parameters(net, width), epsilon)


def theorem_4_1(net: TransformerNet, epsilon: float = 0.1, width: int | None = None) -> SampleComplexity:
    """Samples that suffice to learn what the transformer computes, within its class."""
    width = _at_least(net.layout.width, width)
    gamma = margin_constants(transformer_chain(net)).bound
    parameters = transformer_parameters(width, len(net.layers), len(net.layout.symbols))
    return lemma_2_3(transformer_norm(net), gamma, parameters, epsilon)


@dataclass(frozen=True)
class WidthRow:
    """Samples that suffice when every layer is padded to this width."""

    width: int
    samples: float
    ratio: float
    """To the row before; a bound that grows like w would have 10."""

    def to_json(self) -> dict[str, Any]:
        """As a plain dictionary."""
        return asdict(self)


def width_rows(
    net: ReluNet | TransformerNet, exponents: Iterable[int] = range(3, 13), epsilon: float = 0.1
) -> list[WidthRow]:
    """Width 10^e for each exponent. Only `log p` changes: padding adds nothing to the norm, and nothing to
    the constants of Theorem D.6."""
    theorem = cache(lambda width: _theorem(net, epsilon, width).samples)
    rows: list[WidthRow] = []
    for exponent in exponents:
        samples = theorem(10**exponent)
        rows.append(WidthRow(10**exponent, samples, samples / rows[-1].samples if rows else 1.0))
    return rows


def _theorem(net: ReluNet | TransformerNet, epsilon: float, width: int) -> SampleComplexity:
    if isinstance(net, ReluNet):
        return theorem_3_1(net, epsilon, width)
    return theorem_4_1(net, epsilon, width)


def _at_least(own: int, width: int | None) -> int:
    if width is not None and width < own:
        raise InputError(f"the net is {own:,} wide and cannot be padded to {width:,}")
    return width or own
