"""A trained extended network as a folder: the same three files as every saved net (`tapegrad._files`).

`config.json` describes primary network, formats and algorithm; `model.safetensors` holds the graph, the data
and every trained weight; `certificate.json` says what training came to: theta, the output and its loss.
"""

import os
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tapegrad._files import EXTENDED, read_net, what_is_broken, write_net
from tapegrad._precision import in_double
from tapegrad._sources import source_from_json, source_to_json
from tapegrad._witness import compare, witnesses
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.targets.descent.loss import Weights
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.extended.build import Algorithm, Procedure
from tapegrad.targets.extended.formats import FixedPoint, FloatingPoint, NumberFormat
from tapegrad.targets.extended.net import Extended, Training, TrainingRun
from tapegrad.targets.extended.primary import MLP, Answers, Connected, PrimaryNetwork
from tapegrad.targets.tape.build import Constants, Graph, build_graph
from tapegrad.targets.tape.net import TapeNet
from tapegrad.targets.tape.target import passes
from tapegrad_check.passes import bound_source
from tapegrad_check.targets.extended import check as check_extended

# Primary networks, number formats and algorithms as plain JSON and arrays

Arrays = Mapping[str, NDArray[Any]]

FORMATS = {"fixed": FixedPoint, "floating": FloatingPoint}


def primary_to_json(primary: PrimaryNetwork) -> dict[str, Any]:
    """Sizes and activation of fully connected layers, or the gates of a learner's answer; others cannot be
    written down."""
    if type(primary) is Answers:
        gates = zip(primary.tables, primary.left, primary.right, strict=True)
        rows = [list(map(int, gate)) for gate in gates]
        sizes = {"memory": primary.memory, "inputs": primary.inputs}
        return {**sizes, "gates": rows, "answer": int(primary.answer)}
    if type(primary) is not MLP:
        raise Refused(
            f"a primary network of the kind {type(primary).__name__} cannot be saved",
            advice="Use MLP, linear or perceptron.",
        )
    return {"sizes": list(primary.sizes), "activation": primary.activation}


def primary_from_json(data: Mapping[str, Any]) -> PrimaryNetwork:
    """The network again."""
    if "gates" in data:
        tables, left, right = np.array(data["gates"], np.int64).reshape(-1, 3).T
        memory, inputs, answer = (int(data[name]) for name in ("memory", "inputs", "answer"))
        return Answers(memory, inputs, tables, left, right, np.array(answer))
    return MLP([int(size) for size in data["sizes"]], data["activation"])


def format_to_json(form: NumberFormat) -> dict[str, Any]:
    """The kind of a format and its numbers of bits."""
    for kind, known in FORMATS.items():
        if type(form) is known:
            return {"kind": kind, **vars(form)}
    raise Refused(
        f"a number format of the kind {type(form).__name__} cannot be saved",
        advice="Use FixedPoint or FloatingPoint.",
    )


def format_from_json(data: Mapping[str, Any]) -> NumberFormat:
    """The format again."""
    numbers = {name: value for name, value in data.items() if name != "kind"}
    if not all(type(value) is (bool if name == "continuous" else int) for name, value in numbers.items()):
        raise BrokenNet(f"the number format {dict(data)} holds something other than numbers of bits")
    return FORMATS[data["kind"]](**numbers)


def algorithm_to_json(algorithm: Algorithm) -> tuple[dict[str, Any], dict[str, Any], dict[str, NDArray]]:
    """The machine as it was given; the first configuration of the one it was lowered to; the places of data
    and result: bit, tape, cell and sign."""
    source, _ = source_to_json(algorithm.procedure.machine)
    start = {
        "state": algorithm.start.state,
        "tapes": [sorted(tape) for tape in algorithm.start.tapes],
        "heads": list(algorithm.start.heads),
    }
    data = [(bit, *place, sign) for bit, places in enumerate(algorithm.data) for place, sign in places]
    result = [(bit, *place, sign) for bit, (place, sign) in enumerate(algorithm.result)]
    return source, start, {"data_places": np.array(data, int), "result_places": np.array(result, int)}


def algorithm_from_json(
    source: Mapping[str, Any],
    start: Mapping[str, Any],
    rule: Mapping[str, Any] | None,
    arrays: Arrays,
    read_only: int,
    cells: int,
) -> Algorithm:
    """The algorithm again: the machine is lowered once more."""
    original = source_from_json(source, {})
    if not isinstance(original, TuringMachine):
        raise BrokenNet("the algorithm is no Turing machine")
    rewritings = tuple(passes(original, cells=cells))
    machine = cast(TuringMachine, rewritings[-1].after) if rewritings else original
    symbol = machine.alphabet[-1]
    tapes = tuple({int(cell): symbol for cell in tape} for tape in start["tapes"])
    first = Configuration(start["state"], tapes, tuple(int(head) for head in start["heads"]))
    if not len(first.tapes) == len(first.heads) == machine.tapes:
        raise BrokenNet("the first configuration has not as many tapes as the machine")
    data = _places(arrays["data_places"], 0, read_only, cells)
    result = _places(arrays["result_places"], read_only, machine.tapes, cells)
    if any(len(places) != 1 for places in result):
        raise BrokenNet("a bit of the result lies at more than one place")
    places = tuple(one for (one,) in result)
    return Algorithm(
        machine, first, read_only, data, places, rewritings, Procedure(original, (), (), (), rule)
    )


def _places(table: NDArray[Any], first_tape: int, end_tape: int, cells: int) -> tuple[Any, ...]:
    """For each bit its places, all of them on these tapes and within the cells."""
    bits, tapes, places, signs = table.T
    first = -(cells // 2)
    inside = (tapes >= first_tape) & (tapes < end_tape) & (places >= first) & (places < first + cells)
    if not np.all(inside & (np.abs(signs) == 1)):
        raise BrokenNet("a bit of the data or of the result lies beside its tapes")
    if not np.array_equal(np.unique(bits), np.arange(len(set(bits.tolist())))):
        raise BrokenNet("a bit of the data or of the result lies nowhere")
    found: list[list[Any]] = [[] for _ in range(int(bits.max()) + 1)]
    for bit, tape, cell, sign in table.tolist():
        found[bit].append(((tape, cell), sign))
    return tuple(tuple(one) for one in found)


_GRAPH, _WEIGHT = "graph.", "weight."
"""Prefixes of the arrays of the graph, and of s, T, H and z."""


def save(training: Training, run: TrainingRun, path: str | os.PathLike[str]) -> None:
    """Writes the folder of a network that has been trained, whole or not at all."""
    net, connected = training.net, training.net.error.network.primary
    if not isinstance(net, TapeNet) or not isinstance(connected, Connected):
        raise Refused(
            "an extended network on the simplex of whole configurations cannot be saved",
            advice="Use target='tape'.",
        )
    if training.after is not None:
        raise Refused(
            "a network that was trained batch after batch cannot be saved",
            where="the folder holds one batch, by which the others cannot be checked",
        )
    if not net.done(run.weights):
        raise InputError("the network has not been trained to its end", advice="Train it first.")
    source, start, places = algorithm_to_json(training.algorithm)
    config = {
        "target": EXTENDED,
        "options": {},
        "passes": witnesses(training.algorithm.rewritings),
        "net": net.config()
        | {
            "constants": vars(net.constants),
            "cells": net.cells,
            "read_only": net.read_only,
            "primary": primary_to_json(training.extended.primary),
            "data_format": format_to_json(connected.data_format),
            "weight_format": format_to_json(connected.weight_format),
            "start": start,
            "rule": training.algorithm.procedure.rule,
            "training": {"steps": run.steps, "engine": run.engine, "seconds": run.seconds},
        },
        "source": source,
    }
    arrays: dict[str, NDArray[Any]] = {"x": training.x, "y": training.y, **places}
    arrays |= {_GRAPH + name: array for name, array in vars(net.graph).items()}
    arrays |= {_WEIGHT + name: np.asarray(w) for name, w in run.weights.weights._asdict().items()}
    claims = net.certificate() | {
        "final_loss": run.loss,
        "theta": run.theta.tolist(),
        "output": run.output.tolist(),
        "deviation": run.deviation,
    }
    write_net(path, config, arrays, claims)


@in_double
def load(path: str | os.PathLike[str]) -> tuple[Training, TrainingRun]:
    """The network again, and what its training came to, computed anew from the weights. A folder whose
    certificate does not hold is refused."""
    folder = read_net(path)
    if folder.config["target"] != EXTENDED:
        raise BrokenNet(
            f"the folder holds a net of the target {folder.config['target']!r}",
            where=str(path),
            advice="Load it with tapegrad.load.",
        )
    with what_is_broken(path):
        claims, source = folder.certificate["claims"], bound_source(folder).source
        check_extended(folder.config["net"], folder.own, claims, source)
        training = _training(folder.config, folder.arrays)
        took = folder.config["net"]["training"]
        carry = Descent(_weights(training, folder.arrays), int(took["steps"]))
        if not training.net.done(carry):
            raise BrokenNet("these are not the weights of a training that has ended")
        return training, training.outcome(carry, str(took["engine"]), float(took["seconds"]))


def _training(config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Training:
    """The network before training: the graph from its arrays, everything around it from its description."""
    net, x, y = config["net"], arrays["x"], arrays["y"]
    cells, read_only = net["cells"], net["read_only"]
    if arrays[_WEIGHT + "H"].shape[0] != cells or arrays[_WEIGHT + "T"].shape[0] != cells:
        raise BrokenNet(f"the tapes do not have the {cells} cells that they should")
    primary = primary_from_json(net["primary"])
    data_format, weight_format = format_from_json(net["data_format"]), format_from_json(net["weight_format"])
    algorithm = algorithm_from_json(config["source"], net["start"], net.get("rule"), arrays, read_only, cells)
    compare(config["passes"], algorithm.rewritings, config["tapegrad"])
    if tuple(net["states"]) != algorithm.machine.states:
        raise BrokenNet("the states of the net are not those of the algorithm")
    constants = Constants(**net["constants"])
    graph = Graph(**{n.removeprefix(_GRAPH): a for n, a in arrays.items() if n.startswith(_GRAPH)})
    lowered = vars(build_graph(algorithm.machine, constants))
    if not all(np.array_equal(array, lowered[name]) for name, array in vars(graph).items()):
        raise BrokenNet("the graph of the net is not that of the algorithm as this version lowers it")
    bits = data_format.width * (x.size + y.size), primary.weights * weight_format.width
    if (len(algorithm.data), len(algorithm.result)) != bits:
        raise BrokenNet("the places of data and result do not fit the numbers and their formats")
    tape_net = TapeNet.of(
        graph,
        constants,
        tuple(net["states"]),
        tuple(net["symbols"]),
        cells,
        primary=Connected.of(primary, algorithm, data_format, weight_format, cells),
        x=np.zeros_like(x),
        y=np.zeros_like(y),
        epsilon=data_format.smallest**2,
        read_only=read_only,
    )
    return Extended(tape_net, primary, algorithm, x.shape, y.shape).on(x, y)


def _weights(training: Training, arrays: dict[str, NDArray[Any]]) -> Weights:
    """The trained weights, each in the shape that the network had before training."""
    before = training.start().weights
    found = Weights(*(arrays[_WEIGHT + name] for name in Weights._fields))
    for name, array, start in zip(Weights._fields, found, before, strict=True):
        if array.shape != np.shape(start) or array.dtype != np.float64:
            raise BrokenNet(f"the weights {name!r} have the shape {array.shape}, not {np.shape(start)}")
    return found
