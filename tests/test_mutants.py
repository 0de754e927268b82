"""The mutation tool bites: it kills in every way that there is, and leaves alive what no test notices."""

import json
import subprocess
import sys
from pathlib import Path

from tests.mutants import TRUSTED, equivalent, mutants_of

MODULE = """
LIMIT = 3

def require(holds):
    if not holds:
        raise ValueError("no")

def small(n):
    require(n <= LIMIT)
    return n

def halved(n):
    steps = 0
    while n > 0:
        n, steps = n - 1, steps + 1
    return steps

assert len([0] * 8) == 8

def unseen(n):
    return n + 1

def made_of(n):
    return n % 7

MADE = made_of(9)
"""
TESTS = """
import pytest
from toy import MADE, halved, small

def test_made():
    assert MADE == 2

def test_small():
    assert small(2) == 2
    with pytest.raises(ValueError):
        small(4)

def test_halved():
    assert halved(5) == 5
"""
PROGRAM = """
import json, sys
from pathlib import Path
from tests import mutants
mutants.ROOT, mutants.TRUSTED, mutants.OURS = Path.cwd(), {"toy": ["test_toy.py"]}, ("toy", "test_toy")
sys.path.insert(0, str(Path.cwd()))
import test_toy
tests = mutants.reach(["test_toy.py"], Path("reach.json"))
wanted = json.loads(sys.argv[1])
found = {}
for mutant in mutants.mutants_of("toy"):
    name = f"{mutant.before} => {mutant.after}"
    if name in wanted:
        found[name] = mutants.killer(mutant, mutants.chosen(mutant, tests), 2)
print(json.dumps(found))
"""
EXPECTED = {
    "require(n <= LIMIT) => pass": "test_toy.py::test_small",
    "3 => 6": "test_toy.py::test_small",  # at the top of the module, which has to be loaded anew
    "n - 1 => n": "too slow",
    "8 => 16": "nothing can be collected",
    "n <= LIMIT => n < LIMIT": None,  # 3 is not tried
    "n + 1 => n": None,  # no test calls it
    "n % 7 => n": "test_toy.py::test_made",  # nor this, but what it made was made when it was loaded
}


def test_planted_faults_are_found_and_harmless_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(MODULE)
    (tmp_path / "test_toy.py").write_text(TESTS)
    environment = {"PYTHONPATH": str(Path(__file__).parents[1]), "PATH": ""}
    command = [sys.executable, "-c", PROGRAM, json.dumps(list(EXPECTED))]
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout.splitlines()[-1]) == EXPECTED


def test_every_equivalent_mutant_is_one_of_the_code_and_has_a_reason() -> None:
    modules = {key.partition(" | ")[0] for key in equivalent()}
    assert modules <= TRUSTED.keys()
    known = {mutant.key for module in modules for mutant in mutants_of(module)}
    for key, reason in equivalent().items():
        assert key in known, f"{key} is no mutant of the code as it is"
        assert len(reason) > 10, key
