"""The checker is independent: it imports nothing of the compiler, and works where there is none."""

import ast
import json
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import tapegrad as tg
import tapegrad_check
from tapegrad.circuits import library as circuits
from tapegrad.errors import BrokenNet
from tapegrad_check.__main__ import main

PACKAGE = Path(tapegrad_check.__file__).parent


@pytest.fixture(scope="module")
def adder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nets") / "adder"
    tg.save(tg.compile(circuits.ready("adder2"), "relu"), folder)
    return folder


def test_its_files_import_numpy_safetensors_and_the_standard_library() -> None:
    """And a solver in one place, which is not needed for what `check` does."""
    usual = {"numpy", "safetensors", "tapegrad_check"} | sys.stdlib_module_names
    for file in PACKAGE.rglob("*.py"):
        allowed = usual | ({"pysat", "pysolvers"} if file == PACKAGE / "core" / "solver.py" else set())
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [str(node.module)]
            for name in names:
                assert name.partition(".")[0] in allowed, f"{file.name} imports {name}"


def test_a_copy_checks_a_net_where_the_compiler_cannot_be_imported(adder: Path, tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "tapegrad_check", ignore=shutil.ignore_patterns("__pycache__"))
    program = """
import sys
for name in ("tapegrad", "tapegrad_papers", "jax", "equinox", "numba"):
    sys.modules[name] = None  # an import of it fails
import tapegrad_check
assert tapegrad_check.check(sys.argv[1]).target == "relu"
loaded = {name.partition(".")[0] for name, module in sys.modules.items() if module is not None}
assert not loaded & {"tapegrad", "tapegrad_papers", "jax", "equinox", "numba", "ml_dtypes"}, loaded
print(tapegrad_check.__file__)
"""
    run = subprocess.run(
        [sys.executable, "-c", program, adder], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert Path(run.stdout.strip()).parent == tmp_path / "tapegrad_check"


def test_every_room_is_installed_with_it() -> None:
    """`pip install ./tapegrad_check` takes the packages that its own pyproject lists."""
    settings = tomllib.loads((PACKAGE / "pyproject.toml").read_text())
    rooms = {
        ".".join(["tapegrad_check", *file.parent.relative_to(PACKAGE).parts])
        for file in PACKAGE.rglob("*.py")
        if "build" not in file.parts
    }
    assert set(settings["tool"]["setuptools"]["packages"]) == rooms
    assert settings["project"]["version"] == version("tapegrad")


def test_the_command_says_what_holds(adder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(adder)]) == 0
    first, second, third = capsys.readouterr().out.splitlines()[:3]
    assert first.endswith("(relu): computes this source, for all inputs")
    assert second.startswith("  source: circuit 'adder2', 7 gates, sha256 ")
    assert third.startswith("  - model.safetensors and")
    assert main([str(adder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(tg.check(adder).to_json()))


def test_the_command_tells_what_does_not_hold_from_bad_input(
    adder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Path(shutil.copytree(adder, tmp_path / "broken"))
    certificate = json.loads((broken / "certificate.json").read_text())
    certificate["claims"]["largest_sum"] = 0
    (broken / "certificate.json").write_text(json.dumps(certificate))
    assert main([str(broken)]) == 1
    said = capsys.readouterr()
    assert said.err.startswith("error: largest_sum can be ")
    assert not said.out
    assert main([str(broken), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"].startswith("largest_sum can be ")
    assert main([str(tmp_path / "nowhere")]) == 2
    assert main([str(tmp_path)]) == 2
    with pytest.raises(SystemExit) as left:
        main([])
    assert left.value.code == 2


def test_the_compiler_raises_its_own_error(tmp_path: Path) -> None:
    with pytest.raises(BrokenNet, match=r"not a folder\. Give the folder that `save` wrote"):
        tg.check(tmp_path / "nowhere")
