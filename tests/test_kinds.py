"""Every kind of net in a folder, in the player, in words and before the checker: columns of the table in
docs/architecture.md."""

from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import tapegrad as tg
from tapegrad.learners.on_grid import single_coordinate
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.explaining import Explained
from tapegrad.networks.saving import arrays_of, from_json, same_network, to_json
from tapegrad.show.recorder import Recording, record
from tapegrad.show.views_network import shown_of
from tapegrad.sklearn import RCNNClassifier
from tapegrad.targets.extended import load, save
from tapegrad.targets.rcnn.predicting import roll_out
from tapegrad_check.folder import OF_NETWORK, read_folder
from tests.networks.cases import CASES, COMPILED, EXACT_MEMORY, EXTENDED, TRAINED, compiled, extended, given
from tests.networks.test_losses import MEMORY
from tests.table import fills


@fills(CASES, folder="graph, arrays")
def test_a_net_that_runs_is_its_graph_in_a_folder(name: str, tmp_path: Path) -> None:
    own = compiled(name)
    tg.save(own, tmp_path / "net")
    again = tg.load(tmp_path / "net").net.network
    assert (tmp_path / "net" / "network.json").is_file()
    assert to_json(again) == to_json(own.net.network)
    found, wanted = arrays_of(again), arrays_of(own.net.network)
    assert found.keys() == wanted.keys()
    assert all(np.array_equal(found[key], array) for key, array in wanted.items())
    outputs, others = (NumPy(one).run(given(name))[0] for one in (again, own.net.network))
    assert all(np.array_equal(value, others[key]) for key, value in outputs.items())


@fills([name for name in TRAINED if name != EXTENDED], folder="graph")
def test_a_net_that_is_trained_is_its_loss_in_a_folder(name: str, tmp_path: Path) -> None:
    assert saved_again(name, tmp_path / "net")


@fills([EXACT_MEMORY], folder="own arrays")
def test_exact_memory_has_arrays_of_its_own_in_a_folder(name: str, tmp_path: Path) -> None:
    assert not saved_again(name, tmp_path / "net")


def saved_again(name: str, folder: Path) -> bool:
    """Whether the folder has a graph; in any case the net that is loaded trains as the one that was saved."""
    own = compiled(name)
    tg.save(own, folder)
    again = tg.load(folder)
    found, wanted = again.net.arrays(), own.net.arrays()
    assert found.keys() == wanted.keys()
    assert all(np.array_equal(found[key], array) for key, array in wanted.items())
    if name != EXACT_MEMORY:
        steps = [one.net.step(one.start(*COMPILED[name].inputs)) for one in (own, again)]
        first, second = (one.net.given(carry) for one, carry in zip((own, again), steps, strict=True))
        assert all(np.array_equal(value, second[key]) for key, value in first.items())
    return (folder / "network.json").exists()


@fills([EXTENDED], folder="graph", check="run again")
def test_an_extended_network_in_a_folder(name: str, tmp_path: Path) -> None:
    own = extended()
    run = own.train()
    save(own, run, tmp_path / "net")
    again, found = load(tmp_path / "net")
    assert np.array_equal(found.theta, run.theta)
    assert np.array_equal(again.primary_output(found.theta), run.output)
    assert (tmp_path / "net" / "network.json").exists()
    assert same_network(again.net.network, own.net.network)
    assert tg.check(tmp_path / "net").verdict == "tested on 1 input"
    assert again.first == own.first
    assert tg.verify(again.compiled, [(again.first,)]).agreed


@lru_cache
def recorded(name: str) -> Recording:
    return record(compiled(name), *COMPILED[name].inputs)


def lines(recording: Recording) -> tuple[dict[str, Any], list[dict[str, list[Any]]]]:
    """The panel of the network, and for each frame what its lines show."""
    [number] = [i for i, panel in enumerate(recording.panels) if panel["kind"] == "network"]
    panel = recording.panels[number]
    names = [name for name, *_ in panel["lines"]]
    frames = [
        {
            name: panel["values"][own]
            for name, own in zip(names, frame["panels"][number], strict=True)
            if own >= 0
        }
        for frame in recording.frames
    ]
    return panel, frames


@fills([*CASES, *TRAINED], drawing="every value")
def test_the_player_shows_what_the_network_computes(name: str) -> None:
    """Of the first frame that has values, and of a transformer's run the second, value by value."""
    own = compiled(name)
    recording = recorded(name)
    assert recording.agreed
    panel, frames = lines(recording)
    told = {line: said for line, said, _ in panel["lines"]}
    names = set(own.net.units())  # what the target calls so comes first
    assert all(told[line] in own.explain(line) for line in told if line not in names)
    backend, network = NumPy(own.net.network), own.net.network
    carry = own.start(*COMPILED[name].inputs)
    handed = network.first_state() | own.net.given(carry)
    last = {own["step"]: number for number, own in enumerate(recording.frames)}
    frames = [frames[number] for number in last.values()]  # of a step that has several the whole
    number = next(i for i, frame in enumerate(frames) if frame)
    written = name == "decoder, machine"
    if written:  # token by token: the last token before the newest
        text = own.net.advance(carry, list(last)[number]).tokens
        handed["tokens"] = np.array(text[:-1])
    for frame in frames[number : number + 2]:
        values = handed | {node.name: value for node, value in backend.values(handed)}
        tried = 0
        for line, shown in frame.items():
            value = values[line]
            if written and (value.ndim < 2 or len(value) != len(handed["tokens"])):
                continue
            wanted = shown_of(value)
            assert wanted is not None
            assert shown[0] == wanted[0]
            found = np.array(shown[1:], float)
            assert np.allclose(found, np.array(wanted[1][: len(found)], float), rtol=1e-3, atol=1e-3), line
            tried += len(found)
        assert tried > 8
        if not name.startswith("transformer"):
            break
        handed |= {state: values[part.next] for state, part in network.state.items()}


@fills([EXACT_MEMORY], drawing="its memory")
def test_the_player_shows_a_net_without_a_network(name: str) -> None:
    recording = recorded(name)
    assert recording.agreed
    assert "network" not in {panel["kind"] for panel in recording.panels}
    assert any(panel["kind"] == "drawing" for panel in recording.panels)


@fills(TRAINED, explain="own names, every value")
def test_what_is_trained_is_told_with_its_network(name: str) -> None:
    own = compiled(name)
    units = list(own.units())
    assert len(units) > len(list(own.net.units())) + len(own.net.network.nodes) - 2
    assert all(len(own.explain(unit)) > len(unit) for unit in units[:: 1 + len(units) // 100])
    assert "multiply(" in "".join(own.explain(node.name) for node in own.net.network.nodes)


@fills([EXACT_MEMORY], explain="own names")
def test_memory_in_80_digits_is_told(name: str) -> None:
    own = compiled(name)
    assert all(len(own.explain(unit)) > len(unit) for unit in own.units())


@fills([MEMORY], folder="its layer, memory", explain="every value", check="its layer proved")
def test_memory_of_a_grid_learner(name: str, tmp_path: Path) -> None:
    """The folder has the network of a layer, which the whole network repeats."""
    classifier = RCNNClassifier(single_coordinate()).fit([[1, 0], [0, 0], [1, 1]], [0, 0, 1])
    classifier.save(tmp_path / "net")
    folder = read_folder(tmp_path / "net")
    assert folder.network is not None
    layer = from_json(folder.network, folder.part(OF_NETWORK))
    whole, memory = classifier.network_, RCNNClassifier.load(tmp_path / "net").memory_
    assert np.array_equal(memory, classifier.memory_)
    *_, before, after = islice(roll_out(whole, memory, np.array([1.0, -1.0])), 4)
    assert np.array_equal(NumPy(layer).run({"grid": before})[1]["grid"], after)
    assert not np.array_equal(before, after)
    told = Explained(whole.network)
    assert all(told.explain(node.name) for node in whole.network.nodes)
    assert "train memory" in str(whole.network)
    verdict = tg.check(tmp_path / "net").verdict
    assert verdict.startswith("computes this source, for all inputs; not compared: ")
    assert verdict.endswith("trained memory")


NOISY = "emulator, noise-tolerant"


@fills([name for name in COMPILED if name not in (NOISY, EXTENDED)], check="proved")
def test_the_checker_proves_it_for_all_inputs(name: str, tmp_path: Path) -> None:
    tg.save(compiled(name), tmp_path / "net")
    assert tg.check(tmp_path / "net").verdict == "computes this source, for all inputs"


@fills([NOISY], check="proved, for its samples")
def test_the_checker_proves_it_for_the_samples_that_are_memorised(name: str, tmp_path: Path) -> None:
    tg.save(compiled(name), tmp_path / "net")
    assert tg.check(tmp_path / "net").verdict == "computes this source, for the first 3 samples"
