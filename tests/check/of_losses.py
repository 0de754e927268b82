"""Nets that are trained, taken apart for the tests: the numbers of their losses by name, in one list with
their configurations. What is altered there is written as a graph again, whether that is whole or not."""

from typing import Any

import numpy as np
import pytest

from tapegrad.networks import builder
from tapegrad.networks.network import Network, Training, Update
from tapegrad.networks.saving import arrays_of, to_json
from tapegrad.targets.descent.loss import (
    LONE_INPUTS,
    LONE_LABELS,
    ExtendedNetwork,
    SquaredError,
    Thresholds,
    TracingLoss,
    Weights,
)
from tapegrad.targets.emulator.graph import Graph as EmulatorGraph
from tapegrad.targets.emulator.loss import cube_with, hard_tanh, loss_of
from tapegrad.targets.emulator.net import PracticalNet
from tapegrad.targets.emulator.paper_nets import DEAD, NoisyNet
from tapegrad.targets.simplex.loss import SimplexLoss
from tapegrad.targets.simplex.net import SimplexNet
from tapegrad.targets.tape.build import Constants, Graph
from tapegrad.targets.tape.loss import TapeLoss
from tapegrad.targets.tape.net import TapeNet
from tapegrad_check.folder import OF_NETWORK

Parts = tuple[dict[str, Any], dict[str, np.ndarray]]
"""Config and arrays."""
NUMBERS = ("vertex_weight", "edge_from", "edge_to", "edge_weight")
GRADIENT = Update("gradient")


def of_simplex(net: SimplexNet) -> Parts:
    """With the levels of the loss and the line search in the config."""
    levels = {"unit": net.levels.unit, "most_steps": net.levels.most, "line_search": net.line_search}
    numbers = {name: np.array(getattr(net.machine, name)) for name in NUMBERS}
    return net.config() | levels, {name: np.array(own) for name, own in net.arrays().items()} | numbers


def simplex(config: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[Parts, Parts]:
    """Config and arrays as they are saved, and the graph with its own."""
    unit, most = config["unit"], config["most_steps"]
    numbers = {name: own for name, own in arrays.items() if name in NUMBERS}
    loss = SimplexLoss(**numbers, outside=float(unit * (1 + 3 * (most + 1))))
    updates = {"s": Update("vertex", line_search=config["line_search"]), "z": GRADIENT}
    shapes = Weights((len(loss.vertex_weight),), (0, 0), (0, 0), LONE_LABELS.shape)
    graph = written(loss, Thresholds(1.0, 2.0 * unit, 3.0 * unit), shapes, updates)
    kept = {name: own for name, own in config.items() if name not in ("unit", "most_steps", "line_search")}
    return (kept, {name: own for name, own in arrays.items() if name not in NUMBERS}), graph


def of_tape(net: TapeNet) -> Parts:
    """With the constants of the loss and the number of cells in the config."""
    constants = {name: getattr(net.constants, name) for name in ("b", "c", "low", "high")}
    arrays = {name: np.array(own) for name, own in vars(net.graph).items()}
    return net.config() | {"constants": constants, "cells": net.cells}, arrays


def tape(config: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[Parts, Parts]:
    """Config and arrays as they are saved, and the graph with its own."""
    constants, cells = config["constants"], config["cells"]
    graph = Graph(**{name: own for name, own in arrays.items() if name in Graph.__annotations__})
    loss = TapeLoss.of(graph, Constants(graph.down.shape[1], **constants, exact=True), int(cells))
    on_tapes = cells, graph.down.shape[1]
    shapes = Weights((len(graph.down),), on_tapes, on_tapes, LONE_LABELS.shape)
    updates = {"s": Update("vertex"), "T": GRADIENT, "H": GRADIENT, "z": GRADIENT}
    bounds = Thresholds(1.0, float(constants["low"]), float(constants["high"]))
    kept = {name: own for name, own in config.items() if name not in ("constants", "cells")}
    others = {name: own for name, own in arrays.items() if name not in Graph.__annotations__}
    return (kept, others), written(loss, bounds, shapes, updates)


def written(loss: TracingLoss, bounds: Thresholds, shapes: Weights[Any], updates: dict[str, Update]) -> Parts:
    """The graph of the loss and its arrays, as they are in a folder; unchecked."""
    error = SquaredError(ExtendedNetwork(loss, None, bounds), LONE_INPUTS, LONE_LABELS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder, "check", lambda network: {})
        return parts_of(error.graph(shapes, Training("loss", updates, bounds.low)))


def of_emulator(net: PracticalNet | NoisyNet) -> Parts:
    """With the edges among the arrays, and the number of inputs, rate and what is watched in the config."""
    config = net.config() | {"inputs": net.inputs, "rate": _rule(net).rate}
    config |= {"finished": net.finished} if isinstance(net, PracticalNet) else {}
    edges = {"offsets": net.graph.offsets, "sources": net.graph.sources}
    return config, {name: np.array(own) for name, own in (net.arrays() | edges).items()}


def _rule(net: PracticalNet | NoisyNet) -> Update:
    assert net.network.training is not None
    return net.network.training.updates["weights"]


def emulator(config: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[Parts, Parts]:
    """Config and arrays as they are saved, and the graph with its own."""
    practical = "finished" in config
    graph = EmulatorGraph(1 + config["inputs"] + 1 + practical, arrays["offsets"], arrays["sources"])
    watched = {"finished": config["finished"]} if practical else {}
    activation, dtype = hard_tanh if practical else cube_with(DEAD), arrays["weights"].dtype
    dtype = dtype if practical else np.float64
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder, "check", lambda network: {})
        network = parts_of(loss_of(graph, activation, dtype, config["rate"], watched))
    kept = {name: own for name, own in config.items() if name not in ("inputs", "rate", "finished")}
    return (kept, {n: own for n, own in arrays.items() if n not in ("offsets", "sources")}), network


PUT_TOGETHER = {"simplex": simplex, "tape": tape, "emulator": emulator}


def parts_of(network: Network) -> Parts:
    """A network as a folder has it."""
    return to_json(network), {OF_NETWORK + name: np.array(own) for name, own in arrays_of(network).items()}
