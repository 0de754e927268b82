"""How well do circuit discovery, probes and sparse autoencoders do where the truth is known, and hidden?

`python -m bench.ground_truth` disguises the nets of four RASP programs step by step, runs the methods on each
net in TransformerLens, and scores them against the answer key. It writes the table and the figure of
docs/ground-truth.md. Everything follows from one seed.

- **Edges.** Each edge that there could be, from what a part writes to what another reads, is cut by itself:
  what arrives is replaced by 0, or by what the part writes on another input. It is found if that changes a
  logit by more than a threshold, on the mean over positions.
- **Probes.** A logistic regression for every bit of the stream, in the middle of the last layer: how often it
  is right on inputs that it has not seen, and the cosine between its direction and that of the feature.
- **Autoencoder.** Trained on the same stream, with as many units as there are features. A feature is
  recovered if a unit's direction has a cosine above 0.9 with it. Coordinates are scored in the same way.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from transformer_lens import HookedTransformer

import tapegrad as tg
from tapegrad.errors import Refused
from tapegrad.interop.disguise import DECOY_FEATURES, disguise
from tapegrad.interop.disguise_parts import most_at_once
from tapegrad.interop.disguised import DisguisedNet
from tapegrad.interop.sequences import sequence_net
from tapegrad.interop.sequences_lens import to_transformer_lens
from tapegrad.rasp.library import READY
from tapegrad.targets.decoder.sequences import SequenceNet
from tapegrad_check.rasp.answer_key import proved

PROGRAMS = {"rasp-histogram": 8, "rasp-pattern": 8, "rasp-dyck-1": 6, "rasp-reverse": 5}
"""Names and lengths, at which every disguise can be proved."""
LEVELS = ("plain", "quads", "hadamard", "rotation", "decoys", "superposition", "everything")
DECOYS, NOISE = 4, 1e-8
SEQUENCES = 32
"""Of each of two lengths."""
THRESHOLD = 0.01
NEAR = 0.9
STEPS, SPARSITY, TRAINED = 1000, 3e-3, 3
"""Of the autoencoder, and how often it is trained from another start."""
FIGURE = Path("docs/images/ground-truth.svg")

Activations = dict[str, torch.Tensor]


def at_level(net: SequenceNet, level: str, seed: int) -> DisguisedNet:
    """The net in one of the disguises."""
    hadamard: dict[str, Any] = {"basis": "hadamard", "seed": seed}
    if level in ("plain", "quads", "hadamard", "rotation"):
        return disguise(net, basis="none" if level == "plain" else level, seed=seed)
    if level == "decoys":
        return disguise(net, decoys=DECOYS, **hadamard)
    extra = DECOY_FEATURES if level == "everything" else 0
    width = most_at_once(net, extra)
    more = {"decoys": DECOYS, "noise": NOISE} if extra else {}
    return disguise(net, basis="quads", superposition=width, seed=seed, **more)


def batches(net: DisguisedNet, random: np.random.Generator) -> list[torch.Tensor]:
    """Inputs of two lengths, the token at the beginning included."""
    found = []
    for length in (net.length, max(2, net.length - 2)):
        tokens = random.integers(1, len(net.vocabulary) + 1, (SEQUENCES, length))
        found.append(torch.tensor(np.pad(tokens, ((0, 0), (1, 0)))))
    return found


# Edges


def written(lens: HookedTransformer, tokens: torch.Tensor) -> Activations:
    """What every part writes."""
    _, cache = lens.run_with_cache(tokens)
    found = {"embed": cache["hook_embed"], "positions": cache["hook_pos_embed"]}
    for layer in range(lens.cfg.n_layers):
        for head in range(lens.cfg.n_heads):
            found[f"a{layer}.h{head}"] = (
                cache[f"blocks.{layer}.attn.hook_z"][:, :, head] @ lens.W_O[layer, head]
            )
        found[f"m{layer}"] = cache[f"blocks.{layer}.hook_mlp_out"]
    return found


def candidates(lens: HookedTransformer) -> list[tuple[str, str]]:
    """All pairs of a part and a later reader, but for heads and layers that are empty."""
    sources, targets = [(-1.0, "embed"), (-1.0, "positions")], []
    for layer in range(lens.cfg.n_layers):
        for head in range(lens.cfg.n_heads):
            if lens.W_Q[layer, head].any():
                sources.append((layer, f"a{layer}.h{head}"))
                targets += [(layer, f"a{layer}.h{head}<{side}>") for side in "qkv"]
        if lens.W_in[layer].any():
            sources.append((layer + 0.5, f"m{layer}"))
            targets.append((layer + 0.5, f"m{layer}"))
    targets.append((float("inf"), "logits"))
    return [(source, target) for when, target in targets for before, source in sources if before < when]


def hook_of(lens: HookedTransformer, target: str) -> tuple[str, int | None]:
    """The hook at which a part reads, and which head."""
    if target == "logits":
        return f"blocks.{lens.cfg.n_layers - 1}.hook_resid_post", None
    layer, _, rest = target[1:].partition(".h")
    if not rest:
        return f"blocks.{layer}.hook_mlp_in", None
    return f"blocks.{layer}.hook_{rest[-2]}_input", int(rest[:-3])


def effects(
    lens: HookedTransformer, inputs: Sequence[torch.Tensor], resample: bool
) -> dict[tuple[str, str], float]:
    """For each edge how much logits change without it. Edges to one reader are cut side by side, each in its
    own copy of the inputs."""
    pairs = candidates(lens)
    total = dict.fromkeys(pairs, 0.0)
    for tokens in inputs:
        writes = written(lens, tokens)
        instead = written(lens, tokens.roll(1, 0)) if resample else {n: 0 * own for n, own in writes.items()}
        right = lens(tokens)
        for target in dict.fromkeys(target for _, target in pairs):
            sources = [source for source, other in pairs if other == target]
            changes = torch.cat([instead[source] - writes[source] for source in sources])
            name, head = hook_of(lens, target)

            def patch(
                read: torch.Tensor, hook: Any, changes: Any = changes, head: Any = head
            ) -> torch.Tensor:
                if head is None:
                    return read + changes
                read = read.clone()
                read[:, :, head] += changes
                return read

            found = lens.run_with_hooks(tokens.repeat(len(sources), 1), fwd_hooks=[(name, patch)])
            apart = (found.unflatten(0, (len(sources), -1)) - right).abs().amax(-1)[:, :, 1:].mean((1, 2))
            for source, size in zip(sources, apart.tolist(), strict=True):
                total[source, target] += size / len(inputs)
    return total


def edge_scores(
    net: DisguisedNet, lens: HookedTransformer, inputs: Sequence[torch.Tensor]
) -> dict[str, float]:
    """Precision, recall and average precision of both ways to cut edges."""
    assert net.key is not None
    truth = {(own["from"], own["to"]) for own in net.key.circuit}
    scores: dict[str, float] = {}
    for name, resample in (("zero", False), ("resample", True)):
        effect = effects(lens, inputs, resample)
        found = {edge for edge, size in effect.items() if size > THRESHOLD}
        scores[f"{name} precision"] = len(found & truth) / max(1, len(found))
        scores[f"{name} recall"] = len(found & truth) / len(truth)
        labels = [edge in truth for edge in effect]
        scores[f"{name} average precision"] = float(average_precision_score(labels, list(effect.values())))
    return scores | {"edges": len(truth), "candidates": len(effect)}


# Features


def stream(lens: HookedTransformer, inputs: Sequence[torch.Tensor]) -> NDArray[np.float64]:
    """The residual stream in the middle of the last layer, at tokens."""
    name = f"blocks.{lens.cfg.n_layers - 1}.hook_resid_mid"
    rows = [lens.run_with_cache(tokens, names_filter=name)[1][name][:, 1:].flatten(0, 1) for tokens in inputs]
    return torch.cat(rows).double().numpy()


def varying(plain: NDArray[np.float64], there: Sequence[int]) -> list[int]:
    """Features with two values, each of which is not too rare, and no two of them alike."""
    found: dict[bytes, int] = {}
    for place in there:
        bit = plain[:, place] > 0.5
        if np.isin(plain[:, place], (0.0, 1.0)).all() and 0.02 < bit.mean() < 0.98:
            found.setdefault(bit.tobytes(), place)
    return list(found.values())


def cosines(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Magnitudes of the cosines between rows."""
    one, other = (
        own / np.maximum(np.linalg.norm(own, axis=1, keepdims=True), 1e-12) for own in (first, second)
    )
    return np.abs(one @ other.T)


def feature_scores(
    rows: NDArray[np.float64],
    plain: NDArray[np.float64],
    places: Sequence[int],
    true: NDArray[np.float64],
    seed: int,
) -> dict[str, float]:
    """Probes, an autoencoder, and coordinates, against the directions of the key."""
    order = np.random.default_rng(seed).permutation(len(rows))
    train, test = order[: len(rows) * 3 // 4], order[len(rows) * 3 // 4 :]
    right, near = [], []
    for place, direction in zip(places, true, strict=True):
        bit = plain[:, place] > 0.5
        probe = LogisticRegression(C=10.0, max_iter=100).fit(rows[train], bit[train])
        right.append(probe.score(rows[test], bit[test]))
        near.append(float(cosines(probe.coef_, direction[None])[0, 0]))
    best = [cosines(true, autoencoder(rows, len(places), seed + n)).max(axis=1) for n in range(TRAINED)]
    return {
        "features": len(places),
        "probe accuracy": float(np.mean(right)),
        "probe cosine": float(np.mean(near)),
        "autoencoder": float((np.array(best) > NEAR).mean()),
        "autoencoder cosine": float(np.mean(best)),
        "coordinates": float((cosines(true, np.eye(rows.shape[1])).max(axis=1) > NEAR).mean()),
    }


def autoencoder(rows: NDArray[np.float64], count: int, seed: int) -> NDArray[np.float64]:
    """The directions of the units of a sparse autoencoder."""
    torch.manual_seed(seed)
    data = torch.tensor(rows, dtype=torch.float32)
    decoder = torch.nn.functional.normalize(torch.randn(count, data.shape[1]), dim=1).requires_grad_()
    encoder = decoder.detach().T.clone().requires_grad_()
    before, after = torch.zeros(count, requires_grad=True), data.mean(0).clone().requires_grad_()
    optimiser = torch.optim.Adam([decoder, encoder, before, after], lr=3e-3)
    for _ in range(STEPS):
        batch = data[torch.randint(len(data), (256,))]
        active = torch.relu((batch - after) @ encoder + before)
        unit = torch.nn.functional.normalize(decoder, dim=1)
        loss = ((active @ unit + after - batch) ** 2).sum(1).mean() + SPARSITY * active.sum(1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return decoder.detach().double().numpy()


# All together


def measured(name: str, level: str, seed: int) -> dict[str, Any]:
    """One program in one disguise: every score."""
    program = replace(READY[name].build(), length=PROGRAMS[name])
    plain_net = sequence_net(tg.compile(program, "decoder"))
    net = at_level(plain_net, level, seed)
    assert net.key is not None
    lens = to_transformer_lens(net, split_inputs=True)
    inputs = batches(net, np.random.default_rng(seed))
    drift = proved(net.config(), dict(net.weights), (net.key.data, net.key.arrays))
    with torch.no_grad():
        edges = edge_scores(net, lens, inputs)
        rows, plain = stream(lens, inputs), stream(to_transformer_lens(plain_net), inputs)
    last = [place for place in drift.last_there if place < plain.shape[1]]
    places = varying(plain, last)
    true = net.key.arrays["directions"][places]
    return {
        "program": name,
        "disguise": level,
        "features in dimensions": [net.claims["features"], net.claims["dimensions"]],
        **edges,
        **feature_scores(rows, plain, places, true, seed),
    }


SHOWN: dict[str, tuple[str, Callable[[dict[str, Any]], float]]] = {
    "edges cut to 0: precision": ("edges", lambda own: own["zero precision"]),
    "edges cut to 0: recall": ("edges", lambda own: own["zero recall"]),
    "edges resampled: precision": ("edges", lambda own: own["resample precision"]),
    "edges resampled: recall": ("edges", lambda own: own["resample recall"]),
    "probes: accuracy": ("features", lambda own: own["probe accuracy"]),
    "probes: cosine": ("features", lambda own: own["probe cosine"]),
    "autoencoder: features recovered": ("features", lambda own: own["autoencoder"]),
    "coordinates: features recovered": ("features", lambda own: own["coordinates"]),
}


def drawn(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Means over programs, one panel for edges and one for features."""
    figure, panels = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True)
    levels = [level for level in LEVELS if any(own["disguise"] == level for own in results)]
    for name, (panel, value) in SHOWN.items():
        means = [np.mean([value(own) for own in results if own["disguise"] == level]) for level in levels]
        axis = panels[0] if panel == "edges" else panels[1]
        axis.plot(levels, means, marker="o", label=name)
    places = (("Circuit discovery", (0.0, 0.15)), ("Features", (0.2, 0.57)))
    for axis, (title, corner) in zip(panels, places, strict=True):
        axis.set(title=title, ylim=(-0.03, 1.03))
        axis.tick_params(axis="x", rotation=30)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8, loc="center left", bbox_to_anchor=corner)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    plt.rcParams["svg.hashsalt"] = "ground truth"
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def table(results: Sequence[dict[str, Any]]) -> str:
    """Means over programs, as Markdown."""
    lines = ["| disguise | " + " | ".join(SHOWN) + " |", "|---|" + "---:|" * len(SHOWN)]
    for level in LEVELS:
        own = [found for found in results if found["disguise"] == level]
        if own:
            cells = (f"{np.mean([value(found) for found in own]):.2f}" for _, value in SHOWN.values())
            lines.append(f"| {level} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """All programs in all disguises."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", nargs="*", default=list(PROGRAMS), choices=list(PROGRAMS))
    parser.add_argument("--levels", nargs="*", default=list(LEVELS), choices=LEVELS)
    parser.add_argument("--figure", type=Path, default=FIGURE)
    parser.add_argument("--json", type=Path, help="where to write every score")
    given = parser.parse_args()
    torch.set_num_threads(1)  # the nets are small
    results, begun = [], time.process_time()
    for name in given.programs:
        for level in given.levels:
            try:
                results.append(measured(name, level, given.seed))
            except Refused as refused:
                print(f"{name}, {level}: refused: {refused}", flush=True)
                continue
            shown = {key: round(own, 2) if type(own) is float else own for key, own in results[-1].items()}
            print(json.dumps(shown), flush=True)
    drawn(results, given.figure)
    if given.json is not None:
        given.json.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))
    print(f"{time.process_time() - begun:.0f} s of processor time; {given.figure} written")


if __name__ == "__main__":
    main()
