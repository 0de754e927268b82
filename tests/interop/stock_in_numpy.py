"""GPT-2, Llama and GPT-NeoX as their papers have them, in single precision: logits after every token."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as parse_tensors

Floats = NDArray[np.float32]


def _layer_norm(x: Floats, weight: Floats, bias: Floats, epsilon: float) -> Floats:
    mean = x.mean(1, keepdims=True, dtype=np.float32)
    variance = x.var(1, keepdims=True, dtype=np.float32)
    return (x - mean) / np.sqrt(variance + np.float32(epsilon)) * weight + bias


def _attention(q: Floats, k: Floats, v: Floats) -> Floats:
    """(heads, tokens, size) each, causal; (tokens, heads times size)."""
    tokens, size = q.shape[1:]
    scores = q @ k.transpose(0, 2, 1) / np.float32(np.sqrt(size))
    scores[:, np.triu(np.ones((tokens, tokens), bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(2, keepdims=True))
    mean = (weights / weights.sum(2, keepdims=True)) @ v
    return mean.transpose(1, 0, 2).reshape(tokens, -1)


def frequencies(config: dict[str, Any]) -> Floats:
    """Of each pair, as the two kinds of scaling define them."""
    rope = config["rope_parameters"]
    size = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    rotated = int(size * rope.get("partial_rotary_factor", 1))
    powers = np.float32(rope["rope_theta"]) ** (
        np.arange(0, rotated, 2, dtype=np.float32) / np.float32(rotated)
    )
    if rope["rope_type"] == "linear":
        return np.float32(1) / powers / np.float32(rope["factor"])
    assert rope["rope_type"] == "longrope"
    assert rope["long_factor"] == rope["short_factor"]
    return (np.float32(1) / (np.array(rope["long_factor"], np.float32) * powers)).astype(np.float32)


def rotated(x: Floats, positions: NDArray[np.integer], speeds: Floats) -> Floats:
    """(heads, tokens, size), of which the first numbers are rotated in pairs that are half of them apart."""
    angles = positions[:, None].astype(np.float32) * speeds
    cosine, sine = np.cos(angles), np.sin(angles)
    half = len(speeds)
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    turned = first * cosine - second * sine, second * cosine + first * sine
    return np.concatenate([*turned, rest], axis=-1)


def _gpt2(config: dict[str, Any], w: dict[str, Floats], text: list[int]) -> Floats:
    heads, epsilon = config["n_head"], config["layer_norm_epsilon"]

    def linear(x: Floats, name: str) -> Floats:
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    def norm(x: Floats, name: str) -> Floats:
        return _layer_norm(x, w[f"{name}.weight"], w[f"{name}.bias"], epsilon)

    x = w["transformer.wte.weight"][text] + w["transformer.wpe.weight"][: len(text)]
    for number in range(config["n_layer"]):
        name = f"transformer.h.{number}"
        parts = linear(norm(x, f"{name}.ln_1"), f"{name}.attn.c_attn").reshape(len(text), 3, heads, -1)
        x = x + linear(_attention(*parts.transpose(1, 2, 0, 3)), f"{name}.attn.c_proj")
        x = x + linear(
            np.maximum(linear(norm(x, f"{name}.ln_2"), f"{name}.mlp.c_fc"), 0), f"{name}.mlp.c_proj"
        )
    return norm(x, "transformer.ln_f") @ w["lm_head.weight"].T


def _llama(config: dict[str, Any], w: dict[str, Floats], text: list[int]) -> Floats:
    heads, speeds, positions = config["num_attention_heads"], frequencies(config), np.arange(len(text))

    def linear(x: Floats, name: str) -> Floats:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(x: Floats, name: str) -> Floats:
        square = (x * x).mean(1, keepdims=True, dtype=np.float32) + np.float32(config["rms_norm_eps"])
        return x / np.sqrt(square) * w[f"{name}.weight"]

    x = w["model.embed_tokens.weight"][text]
    for number in range(config["num_hidden_layers"]):
        name = f"model.layers.{number}"
        h = norm(x, f"{name}.input_layernorm")
        q, k, v = (
            linear(h, f"{name}.self_attn.{side}_proj").reshape(len(text), heads, -1).transpose(1, 0, 2)
            for side in "qkv"
        )
        q, k = (rotated(side, positions, speeds) for side in (q, k))
        x = x + linear(_attention(q, k, v), f"{name}.self_attn.o_proj")
        h = norm(x, f"{name}.post_attention_layernorm")
        gated = np.maximum(linear(h, f"{name}.mlp.gate_proj"), 0) * linear(h, f"{name}.mlp.up_proj")
        x = x + linear(gated, f"{name}.mlp.down_proj")
    return norm(x, "model.norm") @ w["lm_head.weight"].T


def _gpt_neox(config: dict[str, Any], w: dict[str, Floats], text: list[int]) -> Floats:
    heads, speeds, positions = config["num_attention_heads"], frequencies(config), np.arange(len(text))
    assert not config["use_parallel_residual"]

    def linear(x: Floats, name: str) -> Floats:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(x: Floats, name: str) -> Floats:
        return _layer_norm(x, w[f"{name}.weight"], w[f"{name}.bias"], config["layer_norm_eps"])

    x = w["gpt_neox.embed_in.weight"][text]
    for number in range(config["num_hidden_layers"]):
        name = f"gpt_neox.layers.{number}"
        together = linear(norm(x, f"{name}.input_layernorm"), f"{name}.attention.query_key_value")
        q, k, v = np.split(together.reshape(len(text), heads, -1).transpose(1, 0, 2), 3, axis=-1)
        q, k = (rotated(side, positions, speeds) for side in (q, k))
        x = x + linear(_attention(q, k, v), f"{name}.attention.dense")
        h = norm(x, f"{name}.post_attention_layernorm")
        x = x + linear(np.maximum(linear(h, f"{name}.mlp.dense_h_to_4h"), 0), f"{name}.mlp.dense_4h_to_h")
    return norm(x, "gpt_neox.final_layer_norm") @ w["embed_out.weight"].T


MODELS: dict[str, Callable[[dict[str, Any], dict[str, Floats], list[int]], Floats]] = {
    "gpt2": _gpt2,
    "llama": _llama,
    "gpt_neox": _gpt_neox,
}


def logits(folder: dict[str, bytes], text: list[int]) -> Floats:
    """What a checkpoint says after every token."""
    config, weights = json.loads(folder["config.json"]), parse_tensors(folder["model.safetensors"])
    found = MODELS[config["model_type"]](config, weights, text)
    assert found.dtype == np.float32
    return found
