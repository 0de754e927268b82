"""The specification of the folder: its reader, run as it stands on the page, against the NumPy backend."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.network import OPERATIONS, WITH_BODY
from tapegrad.networks.saving import arrays_of, to_json
from tests.networks.cases import CASES, given, network_of
from tests.networks.test_losses import NAMES, case, gradient, network_and_values

PAGE = Path(__file__).parents[2] / "docs" / "format.md"


def reader(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the code block of the page defines, run beside the folder `net`."""
    found = re.search(r"<!-- recipe: network -->\n```python\n(.*?)```", PAGE.read_text(), re.S)
    assert found is not None
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    exec(found[1], names)
    return names


@pytest.mark.parametrize("name", CASES)
def test_the_reader_of_the_page_runs_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = network_of(name)
    net = tmp_path / "net"
    net.mkdir()
    (net / "network.json").write_text(json.dumps(to_json(network)))
    arrays = {f"network.{key}": np.array(array, order="C") for key, array in arrays_of(network).items()}
    save_file(arrays, net / "model.safetensors")
    names = reader(tmp_path, monkeypatch)
    plain, values = NumPy(network), given(name)
    inputs = {key: values[key] for key in network.inputs}
    state = names["first_state"]() | {key: values[key] for key in network.state}
    for _ in range(1 if "decoder" in name else 3):
        wanted, after = plain.run(inputs | state)
        found, state = names["step"](inputs, state)
        for key, value in (wanted | after).items():
            assert np.allclose((found | state)[key], value, rtol=1e-5, atol=1e-5), key
        assert found.keys() == wanted.keys()


@pytest.mark.parametrize("name", NAMES)
def test_the_reader_computes_losses_and_the_rule_makes_the_step(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule as the page tells it, with the gradient of the loss that JAX finds, against a step of the
    net."""
    net, carry = case(name)
    network, values = network_and_values(name)
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "network.json").write_text(json.dumps(to_json(network)))
    arrays = {f"network.{key}": np.array(array, order="C") for key, array in arrays_of(network).items()}
    save_file(arrays, tmp_path / "net" / "model.safetensors")
    names = reader(tmp_path, monkeypatch)
    wanted, found = NumPy(network).run(values)[0], names["step"](values, {})[0]
    assert found.keys() == wanted.keys()
    assert all(np.allclose(found[key], wanted[key], rtol=1e-12, atol=1e-12) for key in wanted)
    rule, slopes, after = names["graph"]["training"], gradient(network, values), net.step(carry).weights
    for key, update in rule["updates"].items():
        point, slope = values[key], slopes[key]
        assert not update["line_search"]
        if update["kind"] == "vertex":
            best = np.argmin(slope)
            moved = np.eye(len(point))[best] if slope[best] < slope @ point else point
        else:
            moved = point - update["rate"] * slope
        assert np.allclose(
            moved, after if name.startswith("emulator") else getattr(after, key), rtol=1e-12, atol=1e-12
        )


def test_the_page_has_every_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its arrays and settings in the table, and in the reader."""
    text = PAGE.read_text().split("### Operations")[1].split("### Arithmetic")[0]
    rows = {
        name: cells
        for line in text.splitlines()
        if line.startswith("| `")
        for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
        for name in re.findall(r"`(\w+)`", cells[0])
    }
    for name, operation in OPERATIONS.items():
        assert rows[name][1] == ", ".join(operation.arrays), name
        assert rows[name][2] == ", ".join(operation.settings), name
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "network.json").write_text("{}")
    save_file({"x": np.zeros(1)}, tmp_path / "net" / "model.safetensors")
    assert reader(tmp_path, monkeypatch)["OPERATIONS"].keys() | {*WITH_BODY} == OPERATIONS.keys()
