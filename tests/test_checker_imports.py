"""The checker is independent: nothing of the compiler is imported by its files."""

import ast
from pathlib import Path

import tapegrad_check

ALLOWED = ("tapegrad.errors", "tapegrad_check")


def test_checkers_import_nothing_of_the_compiler() -> None:
    folder = Path(tapegrad_check.__file__).parent
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                own = name.startswith("tapegrad")
                assert not own or name.startswith(ALLOWED), f"{file.name} imports {name}"
                assert not name.startswith(("jax", "equinox", "numba")), f"{file.name} imports {name}"
