"""The checkers of `tape` and `simplex`: they accept what the compiler writes, and nothing else."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._saved import load, save
from tapegrad._verify import verify
from tapegrad.machines.library import busy_beaver
from tapegrad_check import CheckError, check
from tapegrad_check.folder import COMPUTES_SOURCE
from tests.check.altering import Net, net_of

OPTIONS = {"tape": {"cells": 64}, "simplex": {"inputs": [[]]}}


def net_for(target: str) -> Net:
    return net_of(busy_beaver("3x2"), target, OPTIONS[target])


@pytest.mark.parametrize("target", ["tape", "simplex"])
def test_a_saved_net_checks_loads_and_runs(target: str, tmp_path: Path) -> None:
    save(compile(busy_beaver("3x2"), target, **OPTIONS[target]), tmp_path / "net")
    assert check(tmp_path / "net").verdict == COMPUTES_SOURCE
    assert verify(load(tmp_path / "net"), [()]).agreed


@pytest.mark.parametrize(
    ("target", "name"),
    [
        *(("tape", name) for name in ("down", "written", "moves", "vertex_weight", "edge_to", "edge_weight")),
        *(
            ("simplex", name)
            for name in ("state", "heads", "cells", "vertex_weight", "edge_from", "edge_to", "edge_weight")
        ),
    ],
)
def test_no_entry_of_any_array_can_be_changed_unnoticed(target: str, name: str) -> None:
    net = net_for(target)
    assert net.verdict(target) == COMPUTES_SOURCE
    random, unnoticed, array = np.random.default_rng(0), 0, net.arrays[name]
    for place in random.choice(array.size, min(12, array.size), replace=False):
        changed = array.copy()
        entry = changed.reshape(-1)[place : place + 1]
        entry[:] = -entry if name in ("down", "written", "moves") and entry[0] else entry + 1
        try:
            replace(net, arrays=net.arrays | {name: changed}).verdict(target)
            unnoticed += 1
        except CheckError:
            pass
    assert unnoticed == 0


@pytest.mark.parametrize(
    ("key", "change"), [("b", -8), ("c", -4000), ("low", 2000), ("high", 4000), ("high", 1)]
)
def test_constants_out_of_order_are_noticed(key: str, change: int) -> None:
    net = net_for("tape")
    net.config["constants"] = net.config["constants"] | {key: net.config["constants"][key] + change}
    with pytest.raises(CheckError):
        net.verdict("tape")


@pytest.mark.parametrize("target", ["tape", "simplex"])
def test_claims_that_are_too_good_are_noticed(target: str) -> None:
    net = net_for(target)
    for name in net.claims:
        with pytest.raises(CheckError):
            replace(net, claims=net.claims | {name: 10**9}).verdict(target)


def test_an_edge_back_is_noticed_as_a_breach_of_condition_20() -> None:
    net, fan = net_for("tape"), 2
    arrays = net.arrays
    first, target = int(arrays["edge_from"][0]), int(arrays["edge_to"][0])
    back = np.flatnonzero(arrays["edge_from"] == target)
    arrays["edge_to"][back] = first // fan * fan + np.arange(fan)
    same = np.sum(arrays["down"][arrays["edge_from"]] == arrays["down"][arrays["edge_to"]], axis=1)
    arrays["edge_weight"] = -(16.0**3 + 16 * same)
    with pytest.raises(CheckError, match="condition"):
        net.verdict("tape")
