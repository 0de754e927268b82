"""How numba compiles our functions, and keeps what it has compiled from one process to the next.

numba's own cache asks only whether the file of a function has changed. Code of the functions that it calls,
and the values of constants, are compiled into it, so that a changed callee in another file would be served
in its old form. Here the cache is keyed by all sources of the package that such code can come from. And a
cache file that is damaged is no error: the function is compiled again.
"""

import contextlib
import hashlib
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.extending import typeof_impl

_PACKAGE = Path(__file__).parent


@cache
def let_call(kind: type[Any]) -> None:
    """Compiled functions may call what is of this class: its `dispatcher`."""
    typeof_impl.register(kind)(lambda value, context: typeof_impl(value.dispatcher, context))


def dispatcher(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """`numba.njit` with these options, cached."""
    made: Any = numba.njit(**options)(function)
    if made is not function:  # numba can be told to compile nothing
        # Where no folder can be written, numba finds no place for a cache; then there is none.
        with contextlib.suppress(RuntimeError):
            made._cache = PackageCache(function)
    return made


@cache
def sources_stamp() -> str:
    """A digest of all files of the package that hold compiled functions, and of those that they import names
    from: what is compiled into a function comes from there."""
    texts = {path: path.read_bytes() for path in _PACKAGE.rglob("*.py")}
    name = _PACKAGE.name.encode()
    uses_numba = re.compile(rb"^(?:from|import) (?:numba|" + name + rb"\._jit)\b", re.MULTILINE)
    imported = re.compile(rb"^from " + name + rb"\.([\w.]+) import", re.MULTILINE)
    compiled = {path for path, text in texts.items() if uses_numba.search(text)}
    for path in tuple(compiled):
        for module in imported.findall(texts[path]):
            place = _PACKAGE.joinpath(*module.decode().split("."))
            compiled |= {place.with_suffix(".py"), place / "__init__.py"} & texts.keys()
    total = hashlib.sha256()
    for path in sorted(compiled):
        total.update(hashlib.sha256(texts[path]).digest() + str(path.relative_to(_PACKAGE)).encode())
    return total.hexdigest()


class PackageCache(FunctionCache):
    """The cache of one function. Where it lies, and in which files, is numba's choice."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._base: str = self._impl.filename_base
        stamp = self._impl.locator.get_source_stamp(), sources_stamp()
        self._cache_file = IndexDataCacheFile(self.cache_path, self._base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, or None if it is not there or cannot be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file can make pickle, and what it calls, raise almost anything
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keeps the compiled function, if the disk lets it, in place of what was kept of it at other lines
        of its file."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)
            function, _, version = re.split(r"-(\d+)\.(?=py\d)", self._base)
            for old in Path(self.cache_path).glob(f"{function}-*.{version}.*"):
                if not old.name.startswith(f"{self._base}."):
                    old.unlink(missing_ok=True)
