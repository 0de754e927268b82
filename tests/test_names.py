"""What `import tapegrad` gives: every name, and none of what only some of them need."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tapegrad


def test_every_name_comes_from_where_a_reader_is_told() -> None:
    tree = ast.parse(Path(tapegrad.__file__).read_text())
    (told,) = [node for node in tree.body if isinstance(node, ast.If)]
    found = {}
    for node in told.body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            module = import_module(node.module)
            found |= {own.name: getattr(module, own.name) for own in node.names}
    assert sorted(found) == tapegrad.__all__
    assert all(getattr(tapegrad, name) is found[name] for name in found)
    assert {*tapegrad.__all__, "__version__", "machines"} <= set(dir(tapegrad))


def test_a_name_that_does_not_exist_is_an_error_as_of_any_module() -> None:
    with pytest.raises(AttributeError, match="no attribute 'complie'"):
        tapegrad.complie  # noqa: B018


def test_an_import_loads_what_is_asked_for() -> None:
    code = "import sys, tapegrad; print('numpy' in sys.modules); tapegrad.machines.TuringMachine; "
    code += "print('tapegrad.learners' in sys.modules, 'tapegrad.machines' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["False", "False", "True"], done.stderr
