"""Nets of RASP programs in TransformerLens (extra `transformer-lens`): the same weights, no layer norms."""

import warnings

import numpy as np
import torch
from transformer_lens import HookedTransformer, HookedTransformerConfig

from tapegrad._compile import Compiled
from tapegrad.interop.sequences import sequence_net
from tapegrad.networks.form import Affine
from tapegrad.targets.net import Net


def to_transformer_lens(compiled: Compiled | Net, split_inputs: bool = False) -> HookedTransformer:
    """The net as a HookedTransformer; the first token of every input is number 0. With `split_inputs` what
    every head and every layer reads has a hook of its own, so that edges can be patched."""
    net = sequence_net(compiled)
    model, layers = net.model, net.model.layers
    heads = max(1, *(len(layer.heads) for layer in layers))
    rows = max((max(len(h.key), len(h.value)) for layer in layers for h in layer.heads), default=1)
    units = max(1, *(len(layer.units) for layer in layers))
    config = HookedTransformerConfig(
        d_model=model.width,
        d_head=rows,
        n_heads=heads,
        d_mlp=units,
        n_layers=len(layers),
        n_ctx=net.program.length + 1,
        d_vocab=len(model.embedding),
        d_vocab_out=len(model.unembedding),
        act_fn="relu",
        normalization_type=None,
        positional_embedding_type="standard",
        attention_dir="causal" if model.causal else "bidirectional",
        use_attn_scale=False,
        default_prepend_bos=False,
        init_weights=False,
        device="cpu",
        dtype=torch.float32,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the class is gone in TransformerLens 4
        lens = HookedTransformer(config)
    found = {name: np.zeros(tuple(own.shape)) for name, own in lens.state_dict().items()}
    found["embed.W_E"][:] = model.embedding.dense().weight
    ladder = model.positions
    found["pos_embed.W_pos"][:, ladder.first : ladder.first + ladder.count] = ladder.rows(net.program.length)
    found["unembed.W_U"][:] = model.unembedding.dense().weight.T
    for number, layer in enumerate(layers):
        name = f"blocks.{number}"
        for place, head in enumerate(layer.heads):
            for side, own in (("Q", head.query), ("K", head.key), ("V", head.value)):
                found[f"{name}.attn.W_{side}"][place, :, : len(own)] = _matrix(own)
            found[f"{name}.attn.W_O"][place, np.arange(len(head.to)), np.asarray(head.to)] = 1
        found[f"{name}.mlp.W_in"][:, : len(layer.units)] = _matrix(layer.units)
        found[f"{name}.mlp.W_out"][: len(layer.units), np.asarray(layer.to)] = _matrix(layer.sums)
    kept = {name for name in found if name.endswith(("mask", "IGNORE"))}
    state = lens.state_dict()
    lens.load_state_dict(
        {
            name: state[name] if name in kept else torch.tensor(own, dtype=torch.float32)
            for name, own in found.items()
        }
    )
    lens.eval()
    if split_inputs:
        lens.set_use_split_qkv_input(True)
        lens.set_use_hook_mlp_in(True)
    return lens


def _matrix(own: Affine) -> np.ndarray:
    return np.asarray(own.dense().weight).T
