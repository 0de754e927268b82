"""Nets of RASP programs in TransformerLens (extra `transformer-lens`): the same weights, no layer norms."""

import warnings
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy as np
import torch
import transformer_lens
from numpy.typing import NDArray

from tapegrad._compile import Compiled
from tapegrad.errors import Refused
from tapegrad.interop.disguised import DisguisedNet
from tapegrad.interop.sequences import sequence_net
from tapegrad.networks.form import Affine
from tapegrad.targets.net import Net

Weights = Mapping[str, NDArray[np.floating]]
BRIDGED = int(metadata.version("transformer_lens").partition(".")[0]) >= 4
"""Whether models stand behind a bridge."""


def to_transformer_lens(compiled: Compiled | Net | DisguisedNet, split_inputs: bool = False) -> Any:
    """The net as a `HookedTransformer`, in version 4 as a `TransformerBridge`; the first token of every input
    is number 0. With `split_inputs`, in version 3, what every head and every layer reads has a hook of its
    own, so that edges can be patched."""
    if isinstance(compiled, DisguisedNet):
        own = {name: weight for name, weight in compiled.weights.items() if not name.startswith("flag")}
        return hooked(own, compiled.causal, split_inputs)
    net = sequence_net(compiled)
    model, layers = net.parts, net.parts.layers
    heads = max(1, *(len(layer.heads) for layer in layers))
    rows = max((max(len(h.key), len(h.value)) for layer in layers for h in layer.heads), default=1)
    units, width = max(1, *(len(layer.units) for layer in layers)), model.width
    found = {
        "embed.W_E": np.asarray(model.embedding.dense().weight),
        "pos_embed.W_pos": model.table(net.program.length + 1),
        "unembed.W_U": _matrix(model.unembedding),
    }
    for number, layer in enumerate(layers):
        name = f"blocks.{number}"
        sides = {side: np.zeros((heads, width, rows)) for side in "QKV"}
        out, into, back = np.zeros((heads, rows, width)), np.zeros((width, units)), np.zeros((units, width))
        for place, head in enumerate(layer.heads):
            for side, own in (("Q", head.query), ("K", head.key), ("V", head.value)):
                sides[side][place, :, : len(own)] = _matrix(own)
            out[place, np.arange(len(head.to)), np.asarray(head.to)] = 1
        into[:, : len(layer.units)] = _matrix(layer.units)
        back[: len(layer.units), np.asarray(layer.to)] = _matrix(layer.sums)
        found |= {f"{name}.attn.W_{side}": own for side, own in sides.items()}
        found |= {f"{name}.attn.W_O": out, f"{name}.mlp.W_in": into, f"{name}.mlp.W_out": back}
    return hooked(found, net.program.causal, split_inputs)


def hooked(weights: Weights, causal: bool, split_inputs: bool = False) -> Any:
    """Weights under their names in TransformerLens as a model; everything else is 0. Version 4 has a model of
    its own behind a bridge where version 3 has `HookedTransformer`; hooks have the same names in both."""
    heads, width, rows = weights["blocks.0.attn.W_Q"].shape
    settings = {
        "d_model": width,
        "d_head": rows,
        "n_heads": heads,
        "d_mlp": weights["blocks.0.mlp.W_in"].shape[1],
        "n_layers": sum(name.endswith("W_Q") for name in weights),
        "n_ctx": len(weights["pos_embed.W_pos"]),
        "d_vocab": len(weights["embed.W_E"]),
        "d_vocab_out": weights["unembed.W_U"].shape[1],
        "act_fn": "relu",
        "normalization_type": None,
        "positional_embedding_type": "standard",
        "attention_dir": "causal" if causal else "bidirectional",
        "use_attn_scale": False,
        "default_prepend_bos": False,
        "init_weights": False,
        "device": "cpu",
        "dtype": torch.float32,
    }
    if split_inputs and BRIDGED:
        raise Refused(
            "in TransformerLens 4 what single heads read of such a model has no hooks",
            advice="Use TransformerLens 3, or `tapegrad.interop.sequences.ablated`.",
        )
    lens = (_version_4 if BRIDGED else _version_3)(settings, weights)
    lens.eval()
    if split_inputs:
        lens.set_use_split_qkv_input(True)
        lens.set_use_hook_mlp_in(True)
    return lens


def _version_3(settings: dict[str, Any], weights: Weights) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of classes that version 4 has not
        lens = transformer_lens.HookedTransformer(transformer_lens.HookedTransformerConfig(**settings))
    state = {
        name: own if name.endswith(("mask", "IGNORE")) else torch.zeros_like(own)
        for name, own in lens.state_dict().items()
    }
    lens.load_state_dict(state | {name: _tensor(own) for name, own in weights.items()})
    return lens


def _version_4(settings: dict[str, Any], weights: Weights) -> Any:
    """Heads lie side by side in the rows of one matrix here, and matrices are multiplied with columns."""
    from transformer_lens.config import TransformerBridgeConfig  # not in version 3
    from transformer_lens.model_bridge.sources.native import boot  # type: ignore[attr-defined]

    lens = boot(TransformerBridgeConfig(**settings))
    own: Any = lens.original_model
    with torch.no_grad():
        for parameter in own.parameters():
            parameter.zero_()
        own.tok_embed.weight.copy_(_tensor(weights["embed.W_E"]))
        own.pos.weight.copy_(_tensor(weights["pos_embed.W_pos"]))
        own.head.weight.copy_(_tensor(weights["unembed.W_U"]).T)
        for number, block in enumerate(own.layers):
            name = f"blocks.{number}"
            for side, linear in (("Q", block.attn.q), ("K", block.attn.k), ("V", block.attn.v)):
                linear.weight.copy_(_tensor(weights[f"{name}.attn.W_{side}"]).transpose(1, 2).flatten(0, 1))
            block.attn.o.weight.copy_(_tensor(weights[f"{name}.attn.W_O"]).flatten(0, 1).T)
            block.mlp.fc_in.weight.copy_(_tensor(weights[f"{name}.mlp.W_in"]).T)
            block.mlp.fc_out.weight.copy_(_tensor(weights[f"{name}.mlp.W_out"]).T)
    return lens


def _tensor(own: NDArray[np.floating]) -> torch.Tensor:
    return torch.tensor(np.asarray(own), dtype=torch.float32)


def _matrix(own: Affine) -> NDArray[np.floating]:
    return np.asarray(own.dense().weight).T
