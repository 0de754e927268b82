"""A pair of the zoo: a program, its net, and what is known of both; or why there is none.

Candidates have numbers. The first are the ready programs, the others random ones, and a candidate depends on
nothing but the seed and its number.

*The same program.* What a program does on all inputs of up to four of its first two tokens, up to the names
of values, is its family: outputs are numbered in the order in which they come. Programs for other lengths or
with other names for the same thing are of one family. A random program whose family is in a zoo already is
left out, and a family is in one part of a split, so that nothing in one part is the same as anything in
another.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import Any

import numpy as np
from safetensors.numpy import load as tensors_from_bytes
from safetensors.numpy import save as tensors_to_bytes

from tapegrad._zoo.tensors import Tensors, logits, network_from, tensors_of
from tapegrad.attention.codes import MIXED
from tapegrad.errors import Refused
from tapegrad.interop.sequences import circuit, labels
from tapegrad.networks.saving import arrays_of
from tapegrad.networks.saving import to_json as graph_to_json
from tapegrad.rasp.functions import to_json
from tapegrad.rasp.library import READY
from tapegrad.rasp.nodes import Full
from tapegrad.rasp.printing import written
from tapegrad.rasp.program import RaspProgram, State
from tapegrad.rasp.sampler import random_program, tried_inputs
from tapegrad.targets.decoder.sequences import SequenceNet
from tapegrad_check.folder import COMPUTES_SOURCE, CheckError
from tapegrad_check.graph import graph_of
from tapegrad_check.rasp.program import check

FAMILY_TOKENS, FAMILY_LENGTH = 2, 4
FEW_INPUTS = 128
"""Where there are no more, all inputs are verified."""
LONGEST_INPUTS = 8
"""Of the greatest length, besides those of the family and those that liveness was tried on."""
EXAMPLES = 4
MOST_BYTES = 16 << 20
"""Of a net's file."""
SEEDS = 1 << 32
"""Candidates of a zoo, at most: those of the next seed come after them."""


@dataclass(frozen=True)
class Made:
    """A candidate, and what came of it."""

    candidate: int
    entry: dict[str, Any] | None = None
    """What the line of the pair says, but for what depends on the other pairs."""
    tensors: bytes = b""
    refused: str = ""
    """Why there is no net."""
    wrong: str = ""
    """What does not agree: a fault of ours."""


def candidate_program(seed: int, candidate: int) -> RaspProgram:
    """The program of a candidate."""
    names = list(READY)
    if candidate < len(names):
        return replace(READY[names[candidate]].build(), name=names[candidate])
    number = candidate - len(names)
    return replace(random_program(seed * SEEDS + number), name=f"random {seed}.{number}")


def make(seed: int, candidate: int, proved: bool) -> Made:
    """Program, net, verification and proof."""
    try:
        program = candidate_program(seed, candidate)
        net = SequenceNet.build(program)
        tensors = tensors_to_bytes(tensors_of(net))
        if len(tensors) > MOST_BYTES:
            raise Refused(f"the net takes more than {MOST_BYTES >> 20} MiB")
    except Refused as error:
        return Made(candidate, refused=error.what)
    loaded = tensors_from_bytes(tensors)
    inputs, whole = inputs_of(program)
    wrong = _differs(net, loaded, inputs)
    if wrong:
        return Made(candidate, wrong=f"{program.name}: {wrong}")
    if proved:
        try:
            config = json.loads(json.dumps(net.config()))
            again = network_from(loaded, net)
            graph = graph_of(json.loads(json.dumps(graph_to_json(again))), arrays_of(again))
            verdict = check(config, net.certificate(), None, graph).verdict
        except CheckError as error:
            return Made(candidate, wrong=f"{program.name}: the checker says that {error.what}")
        if verdict != COMPUTES_SOURCE:
            return Made(candidate, refused="the checker could not compare everything")
    entry = _entry(net, inputs, whole, proved)
    entry["net_sha256"] = hashlib.sha256(tensors).hexdigest()
    return Made(candidate, entry, tensors)


def inputs_of(program: RaspProgram) -> tuple[list[State], bool]:
    """Inputs on which a net is compared with the interpreter, by their lengths; and whether these are all."""
    size, length = len(program.vocabulary), program.length
    if sum(size**count for count in range(1, length + 1)) <= FEW_INPUTS:
        words = (product(program.vocabulary, repeat=count) for count in range(1, length + 1))
        return [word for own in words for word in own], True
    random = np.random.default_rng([size, length])
    longest = random.integers(0, size, (LONGEST_INPUTS, length)).tolist()
    found = [*_family_inputs(program), *tried_inputs(program)]
    found += [tuple(program.vocabulary[place] for place in word) for word in longest]
    return sorted(dict.fromkeys(found), key=len), False


def _differs(net: SequenceNet, tensors: Tensors, inputs: Sequence[State]) -> str:
    """Where net and interpreter part, if they do: the matrices of the file are run."""
    program, (values, centres) = net.program, net.read
    for _, group in groupby(inputs, len):
        words = list(group)
        found = logits(tensors, program.causal, [net.numbers(word) for word in words])
        if centres is None:
            places = found.argmax(axis=-1)
        else:
            places = np.abs(found.astype(np.float64) - centres).argmin(axis=-1)
        for word, own in zip(words, places.tolist(), strict=True):
            right = program.evaluate(word)[program.output]
            given = [values[place] for place in own]
            if given != right:
                return f"on {list(word)} the net gives {given}, and the program {right}"
    return ""


def _family_inputs(program: RaspProgram) -> list[State]:
    tokens, longest = program.vocabulary[:FAMILY_TOKENS], min(FAMILY_LENGTH, program.length)
    return [word for count in range(1, longest + 1) for word in product(tokens, repeat=count)]


def family_of(program: RaspProgram) -> str:
    """What a program does on short inputs, up to the names of values, as a sum."""
    numbers: dict[Any, int] = {}
    found = [
        [numbers.setdefault((type(own) is bool, own), len(numbers)) for own in row]
        for row in (program.evaluate(word)[program.output] for word in _family_inputs(program))
    ]
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()


def _entry(net: SequenceNet, inputs: Sequence[State], whole: bool, proved: bool) -> dict[str, Any]:
    program, (values, centres) = net.program, net.read
    named, layers = labels(net), net.parts.layers
    examples = [inputs[place] for place in map(int, np.linspace(0, len(inputs) - 1, EXAMPLES))]
    return {
        "name": program.name,
        "ready": program.name in READY,
        "family": family_of(program),
        "program": written(program),
        "vocabulary": [to_json(token) for token in program.vocabulary],
        "length": program.length,
        "causal": program.causal,
        "outputs": [to_json(value) for value in values],
        "centres": None if centres is None else centres.tolist(),
        "layers": len(layers),
        "heads": len(net.heads),
        "units": sum(len(layer.units) for layer in layers),
        "width": net.parts.width,
        "parameters": net.parameters,
        "expressions": sum(not isinstance(node, Full) for node in program.nodes),
        "verified": {"inputs": len(inputs), "all": whole},
        "proved": COMPUTES_SOURCE if proved else None,
        "flag": MIXED if any(to == MIXED for layer in layers for to in np.asarray(layer.to)) else None,
        "examples": [
            [[to_json(own) for own in word], [to_json(own) for own in program.evaluate(word)[program.output]]]
            for word in examples
        ],
        "coordinates": named["coordinates"],
        "does": named["heads"],
        "circuit": circuit(net),
    }
