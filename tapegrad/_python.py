"""What a Python file defines: `my.py:f`. This runs the user's own file, which the user has named for it;
nothing else in this package runs code that it is given."""

import re
import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from tapegrad.errors import InputError

NAMED = re.compile(r"(.+\.py)(?::(\w*))?")


def named_in_python(text: str) -> tuple[Path, str] | None:
    """File and name, where a text has the form `file.py:name`."""
    match = NAMED.fullmatch(text) if "\n" not in text and len(text) < 4096 else None
    return None if match is None else (Path(match[1]), match[2] or "")


def defined_in(path: Path, name: str) -> Any:
    """What the file calls by this name."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    module = _run(path)
    own = [key for key, value in vars(module).items() if _is_own(module, key, value)]
    known = f"It defines {', '.join(own)}." if own else "It defines no functions."
    if not name:
        raise InputError(
            f"{path} is a Python file, so name the function in it",
            advice=f"Write {path}:{own[0] if own else 'name'}. {known}",
        )
    if not hasattr(module, name):
        raise InputError(f"{path} defines no {name!r}", advice=known)
    return getattr(module, name)


def last_defined(path: Path) -> Any:
    """The last function of a file: what its author was working towards."""
    module = _run(path)
    own = [value for key, value in vars(module).items() if _is_own(module, key, value)]
    if not own:
        raise InputError("the Python code defines no function", advice="Write one, as in def f(a: UInt(8)):")
    return own[-1]


def _run(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)  # so that the file may import its neighbours
    try:
        spec.loader.exec_module(module)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        calls = traceback.extract_tb(error.__traceback__)
        lines = [own.lineno for own in calls if Path(own.filename).name == path.name]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        said = f"{type(error).__name__}: {error}"
        raise InputError(f"{path} fails: {said}", where=f"line {line}" if line else "") from error
    finally:
        sys.path.remove(folder)
    return module


def _is_own(module: ModuleType, key: str, value: Any) -> bool:
    return callable(value) and not key.startswith("_") and getattr(value, "__module__", "") == module.__name__
