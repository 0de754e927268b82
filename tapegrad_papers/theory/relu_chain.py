"""The blocks of a ReLU net: the gates of a circuit layer compute, two more layers correct."""

import math

import numpy as np

from tapegrad.targets.relu import ReluNet
from tapegrad.targets.relu.constants import relu_layers
from tapegrad_papers.theory.affine import Affine
from tapegrad_papers.theory.blocks import Chain, Correction, ReadOut, TwoLayers


def relu_chain(net: ReluNet) -> Chain:
    """Appendix B in the terms of appendix D. f_0 is the input itself, which has no parameters. A layer of n
    bits has norm at most sqrt(n)."""
    each = relu_layers(net.correction)
    norms = [math.sqrt(net.layer_width(step)) for step in range(net.circuit_layers + 1)]
    blocks = [
        TwoLayers(
            f"circuit layer {step + 1}",
            relu_affine(net, each * step),
            relu_affine(net, each * step + 1),
            norms[step],
        )
        for step in range(net.circuit_layers)
    ]
    read_out = ReadOut("read-out", relu_affine(net, net.depth), norms[-1])
    return Chain(
        blocks=(*blocks, read_out),
        correction=_correction(net) if net.correction != "none" else None,
        first_parameters=False,
        rounds=1,
        final_norm=math.sqrt(len(net.output_names)),
    )


def relu_affine(net: ReluNet, layer: int) -> Affine:
    """`W_i` and `b_i` of the net."""
    return Affine.measured(net.stack.layer(layer))


def _correction(net: ReluNet) -> Correction:
    """All circuit layers have the same; the widest stands for all, and its own numbers are read."""
    each = relu_layers(net.correction)
    step = max(range(net.circuit_layers), key=lambda step: net.layer_width(step + 1))
    cuts, difference = relu_affine(net, each * step + 2), relu_affine(net, each * step + 3)
    thresholds = np.unique(-cuts.bias)
    return Correction(cuts, difference, float(thresholds[0]), float(thresholds[-1]))
