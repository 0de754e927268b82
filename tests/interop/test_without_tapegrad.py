"""Saved folders run elsewhere: with safetensors and NumPy alone, by the recipes of docs/exports.md."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tapegrad
from tapegrad.circuits.library import ready as ready_circuit
from tapegrad.machines.library import ready

DOCS = Path(__file__).parents[2] / "docs"


def recipe(name: str, page: str = "exports.md") -> str:
    """The code block of the page that follows the comment `<!-- recipe: name -->`."""
    text = (DOCS / page).read_text()
    found = re.search(rf"<!-- recipe: {name} -->\n```python\n(.*?)```", text, re.S)
    assert found is not None
    return found[1]


def run_recipe(name: str, folder: Path, *lines: str, page: str = "exports.md") -> list[str]:
    """Runs the recipe in a fresh interpreter in which tapegrad and JAX cannot be imported."""
    barred = "import sys; sys.modules['tapegrad'] = None; sys.modules['jax'] = None"
    program = "\n".join([barred, recipe(name, page), *lines])
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=folder.parent, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


@pytest.mark.parametrize(
    "options", [{"correction": "thirds"}, {"correction": "none"}, {"form": "practical"}, {"skips": False}]
)
def test_relu_with_numpy(tmp_path, options):
    tapegrad.save(tapegrad.compile(ready_circuit("adder8"), "relu", **options), tmp_path / "net")
    checks = [
        "pairs = [(3, 250), (255, 255), (0, 0), (170, 85), (97, 158)]",
        "numbers = {'a': [a for a, b in pairs], 'b': [b for a, b in pairs]}",
        "bits = [[numbers[n[0]][row] >> int(n[2:-1]) & 1 for n in names] for row in range(len(pairs))]",
        "for row in outputs(np.array(bits)) > 0: print(sum(int(b) << i for i, b in enumerate(row)))",
    ]
    found = run_recipe("relu", tmp_path / "net", *checks)
    assert found == ["253", "510", "0", "255", "255"]


def test_transformer_with_numpy(tmp_path):
    machine = ready("increment")
    tapegrad.save(tapegrad.compile(machine, "transformer", form="paper", steps=32), tmp_path / "net")
    reader = [recipe("transformer"), "for one in run('1011'): print(*one)"]
    found = run_recipe("network", tmp_path / "net", *reader, page="format.md")
    states = list(machine.run(machine.start("1011")))
    wanted = [f"{s.state} {machine.read(s)[0]} {s.heads[0]}" for s in states]
    assert found == wanted
