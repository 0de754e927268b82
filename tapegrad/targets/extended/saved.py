"""A trained extended network as a folder like that of any other net (`tapegrad._files`).

`network.json` is the loss; the arrays beside those of its graph are what it is given after training: the data
and every trained weight. `config.json` has what the graph does not say: primary network, number formats, and
what lies at first on the tapes that are written on. `certificate.json` says what training came to.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tapegrad._files import EXTENDED, read_net, what_is_broken, write_net
from tapegrad._precision import in_double
from tapegrad._sources import source_from_json, source_to_json
from tapegrad._witness import compare, witnesses
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.networks.saving import from_json, to_json
from tapegrad.targets.descent.loss import ExtendedNetwork, Weights
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.extended.build import Algorithm, Procedure
from tapegrad.targets.extended.formats import FixedPoint, FloatingPoint, NumberFormat
from tapegrad.targets.extended.net import Extended, Training, TrainingRun
from tapegrad.targets.extended.primary import MLP, Answers, Connected, PrimaryNetwork
from tapegrad.targets.tape.build import build_graph
from tapegrad.targets.tape.net import TapeNet, read
from tapegrad.targets.tape.target import passes
from tapegrad_check.folder import OF_NETWORK, Folder
from tapegrad_check.graph import graph_in
from tapegrad_check.passes import bound_source
from tapegrad_check.targets.extended import check as check_extended

# Primary networks, number formats and algorithms as plain JSON

FORMATS = {"fixed": FixedPoint, "floating": FloatingPoint}


def primary_to_json(primary: PrimaryNetwork) -> dict[str, Any]:
    """Sizes and activation of fully connected layers, or the gates of a learner's answer; others cannot be
    written down."""
    if type(primary) is Answers:
        return {**vars(primary), "gates": primary.gates.tolist()}
    if type(primary) is not MLP:
        raise Refused(
            f"a primary network of the kind {type(primary).__name__} cannot be saved",
            advice="Use MLP, linear or perceptron.",
        )
    return {**vars(primary), "sizes": list(primary.sizes)}


def primary_from_json(data: Mapping[str, Any]) -> PrimaryNetwork:
    """The network again."""
    if "gates" in data:
        return Answers(**{**data, "gates": np.array(data["gates"], np.int64).reshape(-1, 3)})
    return MLP(**data)


def format_to_json(form: NumberFormat) -> dict[str, Any]:
    """The kind of a format and its numbers of bits."""
    return {"kind": next(kind for kind, known in FORMATS.items() if type(form) is known), **vars(form)}


def format_from_json(data: Mapping[str, Any]) -> NumberFormat:
    """The format again."""
    return FORMATS[data["kind"]](**{name: value for name, value in data.items() if name != "kind"})


def save(training: Training, run: TrainingRun, path: str | os.PathLike[str]) -> None:
    """Writes the folder of a network that has been trained, whole or not at all."""
    net, network = training.net, training.net.error.network
    connected, algorithm = network.primary, training.algorithm
    if not isinstance(net, TapeNet) or not isinstance(connected, Connected):
        raise Refused(
            "an extended network on the simplex of whole configurations cannot be saved",
            advice="Use target='tape'.",
        )
    if training.after is not None or type(network) is not ExtendedNetwork:
        raise Refused(
            "a network that was trained batch after batch cannot be saved",
            where="the folder holds one batch, by which the others cannot be checked",
        )
    if not net.done(run.weights):
        raise InputError("the network has not been trained to its end", advice="Train it first.")
    source, _ = source_to_json(algorithm.procedure.machine)
    config = {
        "target": EXTENDED,
        "options": {},
        "passes": witnesses(algorithm.rewritings),
        "net": net.names()
        | {
            "primary": primary_to_json(training.extended.primary),
            "data_format": format_to_json(connected.data_format),
            "weight_format": format_to_json(connected.weight_format),
            "tapes": [sorted(tape) for tape in algorithm.start.tapes[net.read_only :]],
            "rule": algorithm.procedure.rule,
            "training": {"steps": run.steps, "engine": run.engine, "seconds": run.seconds},
        },
        "source": source,
    }
    claims = net.certificate() | {
        "final_loss": run.loss,
        "theta": run.theta.tolist(),
        "output": run.output.tolist(),
        "deviation": run.deviation,
    }
    write_net(path, config, net.all_arrays() | net.given(run.weights), claims, to_json(net.network))


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
        graph, source = graph_in(folder), bound_source(folder).source
        assert graph is not None
        check_extended(folder.config["net"], folder.own, folder.certificate["claims"], source, graph)
        training, took = _training(folder), folder.config["net"]["training"]
        weights = Weights(*(folder.own[name] for name in Weights._fields))
        carry = Descent(weights, took["steps"])
        if not training.net.done(carry):
            raise BrokenNet("these are not the weights of a training that has ended")
        return training, training.outcome(carry, took["engine"], float(took["seconds"]))


def _training(folder: Folder) -> Training:
    """The network before training. It is built anew, and must be the one that is saved."""
    assert folder.network is not None
    net, x, y = folder.config["net"], folder.own["x"], folder.own["y"]
    network, constants, cells = read(from_json(folder.network, folder.part(OF_NETWORK)))
    primary = primary_from_json(net["primary"])
    formats = format_from_json(net["data_format"]), format_from_json(net["weight_format"])
    connected = Connected.read(primary, *formats, network)
    machine = source_from_json(folder.config["source"], {})
    if not isinstance(machine, TuringMachine):
        raise BrokenNet("the algorithm is no Turing machine")
    algorithm = _algorithm(machine, connected, net["tapes"], net["rule"])
    compare(folder.config["passes"], algorithm.rewritings, folder.config["tapegrad"])
    own = TapeNet.of(
        build_graph(algorithm.machine, constants),
        constants,
        algorithm.machine.states,
        algorithm.machine.alphabet,
        cells,
        primary=connected,
        x=np.zeros_like(x),
        y=np.zeros_like(y),
        epsilon=formats[0].smallest ** 2,
        read_only=algorithm.read_only,
    )
    if net != net | own.names():
        raise BrokenNet("the states and symbols of the net are not those of the algorithm")
    training = Extended(own.read(network), primary, algorithm, x.shape, y.shape).on(x, y)
    first, again = training.start(), training.compiled.start(training.first)
    if not np.array_equal(first.weights.T, again.weights.T):
        raise BrokenNet("the tapes do not show a configuration of the algorithm's machine")
    return training


def _algorithm(
    machine: TuringMachine,
    connected: Connected,
    written: Sequence[Sequence[int]],
    rule: Mapping[str, Any] | None,
) -> Algorithm:
    """The algorithm again: the machine is lowered once more, and bits lie where they do in the network."""
    given, cells = connected.blank_tapes.shape
    rewritings, first = tuple(passes(machine, cells=cells)), -(cells // 2)
    lowered = cast(TuringMachine, rewritings[-1].after) if rewritings else machine
    filled = [np.flatnonzero(tape > 0) + first for tape in connected.blank_tapes]
    tapes = [dict.fromkeys(map(int, tape), lowered.alphabet[-1]) for tape in (*filled, *written)]
    start = Configuration(lowered.start_state, tuple(tapes), (0,) * lowered.tapes)
    data = np.column_stack([connected.data_bits, _places(connected.data_cells, connected.data_changes)])
    result = _places(connected.result_cells, connected.result_signs)
    data[:, 2], result[:, :2] = data[:, 2] + first, result[:, :2] + (given, first)
    procedure = Procedure(machine, (), (), (), rule)
    return Algorithm(lowered, start, given, data, result, rewritings, procedure)


def _places(cells: NDArray[np.int64], signs: NDArray[np.float64]) -> NDArray[np.int64]:
    """For each column of the signs the one tape whose sign is not 0, the cell, and that sign."""
    on = np.abs(signs).argmax(axis=0)
    return np.column_stack([on, cells, np.sign(signs[on, np.arange(len(on))])]).astype(np.int64)
