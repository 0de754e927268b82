"""What a network's names are said to stand for: the formulas are computed and compared with its values."""

import re
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import tapegrad as tg
from tapegrad.cli import app
from tapegrad.errors import InputError
from tapegrad.learners import dictator
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.explaining import Explained
from tests.networks.cases import CASES, compiled, given
from tests.table import fills

MANY = 60
"""Names of a network that are tried."""


def explained(name: str) -> Explained:
    return compiled(name).net.explained


def computed(formula: str, values: dict[str, np.ndarray]) -> Any:
    """A formula of names, weights, relu and rounded, by Python's own arithmetic."""
    names = sorted((own for own in values if own in formula), key=len, reverse=True)
    pattern = "|".join(map(re.escape, names)) or r"\Z\A"
    found: list[np.ndarray] = []

    def place(match: re.Match[str]) -> str:
        found.append(values[match[0]].astype(float))
        return f"v[{len(found) - 1}]"

    text = re.sub(pattern, place, formula)
    text = re.sub(r"(\d) (?=v\[|relu\(|rounded\(|\()", r"\1 * ", text)
    own = {"v": found, "relu": lambda x: np.maximum(x, 0), "rounded": lambda x: (x > 0.5) * 1.0}
    return eval(text, {"__builtins__": {}}, own)


@fills(CASES, explain="every row")
def test_rows_compute_what_is_said(name: str) -> None:
    own, network = explained(name), compiled(name).net.network
    values = given(name) | {node.name: value for node, value in NumPy(network).values(given(name))}
    tried = 0
    nodes = {node.name: node for node in network.nodes if node.operation in ("affine", "layers")}
    units = [unit for unit in own.units() if unit.partition(": ")[0].partition("[")[0] in nodes]
    for unit in units[:: 1 + len(units) // MANY]:
        node = nodes[unit.partition(": ")[0].partition("[")[0]]
        said = own.explain(unit)
        assert said is not None
        if unit in nodes or "terms)" in said:
            continue
        formula = said.removeprefix(f"{unit} = ").partition("; it serves ")[0]
        formula = formula.removesuffix(f" ({node.about})")
        known = columns(own, values, node.reads[0])
        if node.operation == "layers":
            known |= columns(own, values, node.name) | slots(own, node, values[node.reads[0]])
            place = unit.removeprefix(f"{node.name}: ")
            wanted = known[unit if unit in known else f"{node.name}[{own.of_rows(node).index(place)}]"]
        else:
            read = node.reads[0]
            known |= columns(own, values, read)
            while read in own.nodes and own.nodes[read].operation in ("affine", "relu"):  # units written out
                read = own.nodes[read].reads[0]
                known |= columns(own, values, read)
            rows = [own.name_of(node, row) for row in range(len(own.rows_of(node)))]
            wanted = values[node.name][..., rows.index(unit)]
        assert np.allclose(computed(formula, known), wanted, atol=1e-4), said
        tried += 1
    assert tried > 3


def columns(own: Explained, values: dict[str, np.ndarray], value: str) -> dict[str, np.ndarray]:
    """The columns of a value by their names, and by their numbers."""
    array = values[value]
    names = own.names.get(value, ())
    numbered = (
        {f"{value}[{place}]": array[..., place] for place in range(array.shape[-1])} if array.ndim else {}
    )
    return numbered | {said: array[..., place] for place, said in enumerate(names)}


def slots(own: Explained, node: Any, x: np.ndarray) -> dict[str, np.ndarray]:
    """What every row of a node of layers gives, from the arrays of its rows."""
    made: list[np.ndarray] = [x[..., place] for place in range(x.shape[-1])]
    for row in own.rows_of(node):
        total = sum((weight * made[place] for place, weight in row.terms), np.full(x.shape[:-1], row.bias))
        made.append(np.maximum(total, 0) if row.relu else total)
    return {f"{node.name}[{row}]": value for row, value in enumerate(made[x.shape[-1] :])}


def test_what_makes_a_column() -> None:
    paper, program = explained("transformer, paper"), explained("transformer, program")
    assert (
        "block_4.2 makes it rounded(pos2[2] + carry - 1) (bit 2 of the head's move)" in paper.makers["carry"]
    )
    head = "block_67 copies ram write[0] from the place it finds (read 6 of ram, written)"
    assert program.makers["raw read 6 of ram, written[0]"] == [head]
    assert explained("relu, compact").explain("a[0]") == "a[0]: a column of bits: 0 or 1"


def test_values_are_told_by_their_lines() -> None:
    said = explained("rcnn, channels").explain("grid")
    assert said == "grid: state grid: float32[9, rows, columns] then next"


OF_LAYERS = ("relu", "transformer, circuit", "transformer, clock", "transformer, program")


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(OF_LAYERS)])
def test_rows_of_layers_are_those_of_the_network(name: str) -> None:
    """The rows that formulas are made of give what the node gives."""
    own, network = explained(name), compiled(name).net.network
    values = given(name) | {node.name: value for node, value in NumPy(network).values(given(name))}
    for node in network.nodes:
        if node.operation == "layers":
            made = slots(own, node, values[node.reads[0]])
            last = {slot: row for row, slot in enumerate(network.array(node, "to").tolist())}
            for column, slot in enumerate(network.array(node, "out").tolist()):
                if slot in last:
                    found = made[f"{node.name}[{last[slot]}]"]
                    assert np.allclose(found, values[node.name][..., column], atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_every_name_is_told_and_no_other(name: str) -> None:
    own = explained(name)
    units = list(own.units())
    assert len(set(units)) == len(units)
    assert all(own.explain(unit) for unit in units[:: 1 + len(units) // MANY])
    for unit in (
        "no such name",
        "",
        "[0]",
        "units[x]",
        ": carry",
        f"{units[-1]}0",
        "block_4.0[٣]",
        "block_4.0[-1]",
    ):
        assert own.explain(unit) is None


def test_the_names_of_the_network_are_known_to_the_command() -> None:
    net = compiled("relu, compact")
    assert net.explain("units[0]") == "units[0] = relu(a[0] + b[0] - 1)"
    assert net.explain("0.0").startswith("Unit 0 of ReLU layer 0")
    assert [*net.units()][-1] == "units[7]"
    with pytest.raises(InputError, match="does not name a unit"):
        net.explain("units[8]")
    result = CliRunner().invoke(app, ["explain", "adder2", "--target", "relu", "units"])
    assert "layers(bits, slots=7)" in result.output


def test_a_net_without_a_network_has_its_own_names_alone() -> None:
    net = tg.compile(dictator(2, 2), "emulator", form="paper")
    assert list(net.units()) == list(net.net.units())
    with pytest.raises(InputError):
        net.explain("loss")
    practical = tg.compile(dictator(2, 2), "emulator")
    assert "loss" in practical.explain("loss")
