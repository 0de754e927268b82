"""The checkers of `tape` and `simplex`: they accept what the compiler writes, and nothing else."""

import copy

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._saved import load, save
from tapegrad._sources import source_to_json
from tapegrad._verify import verify
from tapegrad.machines.library import busy_beaver
from tapegrad_check import CheckError, check
from tapegrad_check.folder import COMPUTES_SOURCE
from tapegrad_check.sources import model_of
from tapegrad_check.targets.simplex import check as check_simplex
from tapegrad_check.targets.tape import check as check_tape

OPTIONS = {"tape": {"cells": 64}, "simplex": {"inputs": [[]]}}
CHECKS = {"tape": check_tape, "simplex": check_simplex}


def claims(target):
    compiled = compile(busy_beaver("3x2"), target, **OPTIONS[target])
    net, source = compiled.net, model_of(*source_to_json(compiled.lowered))
    arrays = {name: np.array(array) for name, array in net.arrays().items()}
    return copy.deepcopy(net.config()), arrays, net.certificate(), source


@pytest.mark.parametrize("target", ["tape", "simplex"])
def test_a_saved_net_checks_loads_and_runs(target, tmp_path):
    save(compile(busy_beaver("3x2"), target, **OPTIONS[target]), tmp_path / "net")
    assert check(tmp_path / "net").verdict == COMPUTES_SOURCE
    assert verify(load(tmp_path / "net"), [()]).agreed


@pytest.mark.parametrize(
    ("target", "name"),
    [
        *(("tape", name) for name in ("down", "written", "moves", "vertex_weight", "edge_to", "edge_weight")),
        *(
            ("simplex", name)
            for name in ("state", "heads", "cells", "successor", "vertex_weight", "edge_weight")
        ),
    ],
)
def test_no_entry_of_any_array_can_be_changed_unnoticed(target, name):
    config, arrays, certificate, source = claims(target)
    CHECKS[target](config, arrays, certificate, source)
    random, unnoticed = np.random.default_rng(0), 0
    for place in random.choice(arrays[name].size, min(12, arrays[name].size), replace=False):
        changed = dict(arrays, **{name: arrays[name].copy()})
        entry = changed[name].reshape(-1)[place : place + 1]
        entry[:] = -entry if name in ("down", "written", "moves") and entry[0] else entry + 1
        try:
            CHECKS[target](config, changed, certificate, source)
            unnoticed += 1
        except CheckError:
            pass
    assert unnoticed == 0


@pytest.mark.parametrize(
    ("key", "change"), [("b", -8), ("c", -4000), ("low", 2000), ("high", 4000), ("tapes", 1)]
)
def test_constants_out_of_order_are_noticed(key, change):
    config, arrays, certificate, source = claims("tape")
    config["constants"][key] += change
    with pytest.raises(CheckError):
        CHECKS["tape"](config, arrays, certificate, source)


@pytest.mark.parametrize("target", ["tape", "simplex"])
def test_claims_that_are_too_good_are_noticed(target):
    config, arrays, certificate, source = claims(target)
    for name in certificate:
        with pytest.raises(CheckError):
            CHECKS[target](config, arrays, certificate | {name: 10**9}, source)


def test_an_edge_back_is_noticed_as_a_breach_of_condition_20():
    config, arrays, certificate, source = claims("tape")
    fan = 2
    first, target = int(arrays["edge_from"][0]), int(arrays["edge_to"][0])
    back = np.flatnonzero(arrays["edge_from"] == target)
    arrays["edge_to"][back] = first // fan * fan + np.arange(fan)
    same = np.sum(arrays["down"][arrays["edge_from"]] == arrays["down"][arrays["edge_to"]], axis=1)
    arrays["edge_weight"] = -(16.0**3 + 16 * same)
    with pytest.raises(CheckError, match="condition"):
        check_tape(config, arrays, certificate, source)
