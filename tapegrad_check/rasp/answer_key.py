"""Nets in disguise as folders: the three files of a net, and the answer key beside them, checked as well.

The key names the plain net, the direction of every feature, where the parts of the plain net stand, what was
added, and the true circuit. Nothing of it is believed: the plain net is proved to compute the source, the
weights to follow it (`rasp.disguise`), and the circuit and the list of decoys are worked out again.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from tapegrad_check.fields import array, number, whole
from tapegrad_check.folder import (
    Arrays,
    Checked,
    Folder,
    bytes_of,
    issued_for,
    parsed,
    require,
    tensors_of,
)
from tapegrad_check.graph import graph_of
from tapegrad_check.rasp.disguise import Disguised
from tapegrad_check.rasp.disguised_heads import Slots
from tapegrad_check.rasp.drift import Matrix
from tapegrad_check.rasp.program import certificate_of
from tapegrad_check.sources.rasp import Rasp, rasp_of, value_of

KEY, KEY_ARRAYS = "answer_key.json", "answer_key.safetensors"
LIMITS = {KEY: 256 << 20, KEY_ARRAYS: 4 << 30}
ENTRIES = {"version", "tapegrad", "target", "options", "net", "source"}
PLAIN = "plain."
"""Prefix of the arrays of the plain net."""
CLAIMED = ("score_drift", "bit_drift", "output_drift")
"""Bounds that the certificate names; they may be larger than need be."""

Answers = tuple[dict[str, Any], Arrays]


def read_key(path: str | os.PathLike[str], folder: Folder) -> Answers:
    """The two files of the answer key, once their sums agree."""
    home = Path(path)
    contents = {name: bytes_of(home / name, limit) for name, limit in LIMITS.items()}
    for name, content in contents.items():
        issued_for(folder.certificate, name, content, home)
    return parsed(contents[KEY], home / KEY), tensors_of(contents[KEY_ARRAYS], home / KEY_ARRAYS)


def check_folder(path: str | os.PathLike[str], folder: Folder) -> tuple[Rasp, Checked]:
    """The program of the key, and the statements that hold; `CheckError` says which does not."""
    require(folder.config.keys() <= ENTRIES, "a net in disguise has other entries")
    bare = folder.config["source"] == folder.config["options"] == {}
    require(bare, "the source of a net in disguise stands in its answer key, and nowhere else")
    key, arrays = read_key(path, folder)
    net = proved(folder.config["net"], folder.arrays, (key, arrays))
    claims, found = folder.certificate["claims"], claims_of(net)
    require(claims.keys() == found.keys(), "the certificate claims other things")
    for name, own in found.items():
        holds = number(claims[name], name) >= own if name in CLAIMED else claims[name] == own
        require(holds, f"the certificate claims something else than what holds: {name}")
    layers, heads = len(net.units), len(net.heads)
    decoys = len(key["decoys"]["heads"])
    kept = sum(map(len, net.slots.erased))
    return net.program, Checked(
        [
            f"the plain net of the answer key computes the program, for every input of up to "
            f"{net.program.length:,} tokens: {heads} heads in {layers} layers",
            f"{net.features} features in {len(net.drift.off)} dimensions"
            + (f", {kept} of which are erased to make room" if kept else ""),
            f"scores drift from those of the plain net by {net.scores:.2g} at most, bits by {net.bit:.2g}, "
            f"and what is read by {net.read_off:.2g}, rounding of single precision included",
            f"{decoys} decoy heads and {len(key['decoys']['units'])} decoy units do not matter",
            "the circuit in the answer key is that of the net",
        ]
    )


def claims_of(net: Disguised) -> dict[str, Any]:
    """What a certificate says in numbers."""
    return {
        "dtype": "float32",
        "length": net.program.length,
        "causal": net.program.causal,
        "features": net.features,
        "dimensions": len(net.drift.off),
        "score_drift": net.scores,
        "bit_drift": net.bit,
        "output_drift": net.read_off,
    }


def proved(own: dict[str, Any], weights: Arrays, answers: Answers, complete: bool = True) -> Disguised:
    """The net with its drift, if it follows the plain net of the key, and if the key says what holds. A key
    that is not complete yet has no decoys and no circuit."""
    key, arrays = answers
    config = key["plain"]
    require(config["machine"].keys() == {"kind", "source"}, "the program has other entries")
    require(config["machine"]["source"].get("kind") == "rasp program", "the net is of no program")
    program = rasp_of(config["machine"]["source"], {})
    plain = {name.removeprefix(PLAIN): a for name, a in arrays.items() if name.startswith(PLAIN)}
    graph = graph_of(key["network"], plain)
    directions = array(arrays, "directions", np.float64, (None, None))
    slots = _slots(key, arrays, weights)
    net = Disguised(config, graph, program, weights, directions, slots)
    _shapes(net, weights, directions)
    net.check()
    require(key["certificate"] == certificate_of(net), "the certificate of the plain net is another one")
    _words(own, program, net)
    names = list(net.coordinates)
    names += [f"decoy[{place}]" for place in range(net.features - len(names))]
    require(key["features"] == names, "features have other names")
    if complete:
        require(key["decoys"] == decoys_of(net), "the decoys are others")
        require(key["circuit"] == circuit_of(net, names), "the circuit is another one")
    return net


def _slots(key: dict[str, Any], arrays: Arrays, weights: Arrays) -> Slots:
    count = sum(name.endswith("W_Q") for name in weights)
    entries = key["slots"]
    parts: dict[str, list[list[int]]] = {}
    for part, matrix, axis in (("heads", "attn.W_Q", 0), ("units", "mlp.W_in", 1)):
        parts[part] = entries[part]
        require(isinstance(entries[part], list) and len(entries[part]) == count, "layers have no slots")
        for layer, slots in enumerate(entries[part]):
            most = weights[f"blocks.{layer}.{matrix}"].shape[axis]
            require(all(type(own) is int and 0 <= own < most for own in slots), "a slot is out of range")
            require(len(set(slots)) == len(slots), "two parts have the same slot")
    scales = [array(arrays, f"scales.{n}", np.float64, (len(own),)) for n, own in enumerate(parts["units"])]
    for own in scales:
        require((np.frexp(own)[0] == 0.5).all(), "a unit is scaled by something else than a power of two")
    heat = [number(own, "the factor of scores") for own in entries["heat"]]
    require(len(heat) == count and all(0 < own <= 1 for own in heat), "scores are multiplied by others")
    erased = []
    require(isinstance(entries["erased"], list) and len(entries["erased"]) == count, "layers erase nothing")
    for layer, pairs in enumerate(entries["erased"]):
        most = weights[f"blocks.{layer}.mlp.W_in"].shape[1]
        own = {whole(feature, "a feature"): whole(unit, "a unit", 0, most - 1) for feature, unit in pairs}
        used = [*own.values(), *parts["units"][layer]]
        require(len(own) == len(pairs) and len(set(used)) == len(used), "two units have the same slot")
        erased.append(own)
    return Slots(parts["heads"], parts["units"], scales, heat, erased)


def _shapes(net: Disguised, weights: Arrays, directions: Matrix) -> None:
    """All weights are there, of single precision and of one size, and nothing else is."""
    features, width = directions.shape
    require(features >= len(net.meanings), "features have no directions")
    require([len(own) for own in net.slots.heads] == net.counts, "layers have other heads")
    require(
        [len(own) for own in net.slots.units] == [len(own) for own in net.units], "layers have other units"
    )
    tokens, outputs = len(net.program.vocabulary) + 1, len(net.unembedding)
    wanted: dict[str, tuple[int | None, ...]] = {
        "embed.W_E": (tokens, width),
        "pos_embed.W_pos": (net.program.length + 1, width),
        "unembed.W_U": (width, outputs),
    }
    for layer in range(len(net.units)):
        heads, _, rows = weights[f"blocks.{layer}.attn.W_Q"].shape
        units = weights[f"blocks.{layer}.mlp.W_in"].shape[1]
        wanted |= {f"blocks.{layer}.attn.W_{side}": (heads, width, rows) for side in "QKV"}
        wanted[f"blocks.{layer}.attn.W_O"] = (heads, rows, width)
        wanted |= {f"blocks.{layer}.mlp.W_in": (width, units), f"blocks.{layer}.mlp.W_out": (units, width)}
    if "flag.W" in weights:
        wanted["flag.W"] = (width, 1)
    require(wanted.keys() == weights.keys(), "there are other weights")
    for name, shape in wanted.items():
        array(weights, name, np.float32, shape)


def _words(own: dict[str, Any], program: Rasp, net: Disguised) -> None:
    """What the net's own file says of tokens and outputs."""
    require(
        own.keys() == {"vocabulary", "outputs", "length", "causal", "centres"}, "the net has other entries"
    )
    vocabulary = program.data["vocabulary"]
    require(json.dumps(own["vocabulary"]) == json.dumps(vocabulary), "the net has another vocabulary")
    outputs = [repr(value_of(value)) for value in own["outputs"]]
    require(outputs == [repr(value) for value in program.values[program.output]], "the net has other outputs")
    same = own["length"] == program.length and own["causal"] is program.causal
    require(same and type(own["length"]) is int, "the net has another length, or looks elsewhere")
    wanted = None
    if program.nodes[program.output].kind == "mean":
        place = next(p for p, own in enumerate(net.meanings) if own == ("raw", program.output, 0))
        wanted = [float(centre) for centre in net.brought(place)[0]]
    require(own["centres"] == wanted, "outputs stand for other numbers")


def decoys_of(net: Disguised) -> dict[str, list[str]]:
    """Heads and units that are there, and of which the plain net has none."""
    heads, units = [], []
    for layer in range(len(net.units)):
        query = net.weights[f"blocks.{layer}.attn.W_Q"]
        into = net.weights[f"blocks.{layer}.mlp.W_in"]
        erasers = set(net.slots.erased[layer].values())
        heads += [
            f"a{layer}.h{slot}"
            for slot in range(len(query))
            if slot not in net.slots.heads[layer] and query[slot].any()
        ]
        units += [
            f"m{layer}.{slot}"
            for slot in range(into.shape[1])
            if slot not in {*net.slots.units[layer], *erasers} and into[:, slot].any()
        ]
    return {"heads": heads, "units": units}


def circuit_of(net: Disguised, names: list[str]) -> list[dict[str, Any]]:
    """Edges: which part of the plain net reads what which part wrote, under the names of this net. A layer of
    units reads what it erases, too."""
    writes: list[tuple[float, str, set[int]]] = [
        (-1.0, "embed", set(net.embedding.columns)),
        (-1.0, "positions", net.positions()),
    ]
    reads: list[tuple[float, str, set[int]]] = []
    head = 0
    for layer, slots in enumerate(net.slots.heads):
        for slot in slots:
            name = f"a{layer}.h{slot}"
            writes.append((layer, name, set(net.heads_to[head])))
            for side, own in zip("qkv", net.sides, strict=True):
                reads.append((layer, f"{name}<{side}>", set(own[head].columns)))
            head += 1
        writes.append((layer + 0.5, f"m{layer}", set(net.adds_to[layer])))
        reads.append((layer + 0.5, f"m{layer}", {*net.units[layer].columns, *net.slots.erased[layer]}))
    reads.append((float("inf"), "logits", set(net.unembedding.columns)))
    return [
        {"from": source, "to": target, "features": [names[place] for place in sorted(places & wanted)]}
        for when, target, wanted in reads
        for before, source, places in writes
        if before < when and places & wanted
    ]
