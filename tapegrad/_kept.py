"""What XLA compiles for a command, kept from one process to the next, as `_jit` keeps what numba compiles.

JAX looks up a compiled function by its code, its options, the versions of XLA and the processor that it was
compiled for, so nothing is served in an old form. It is told so by environment variables, because most
commands have no need to load JAX, which takes long; whoever has set them keeps what they set. A library must
not do this: only commands do.
"""

import contextlib
import os
import stat
import sys
import warnings
from pathlib import Path

FOLDER = "JAX_COMPILATION_CACHE_DIR"
SHORTEST = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
WORTH_KEEPING = "0.05"
"""Seconds that it took to compile."""
LARGEST_FOLDER = 1 << 28
"""Bytes; a folder that has grown larger is emptied."""


def keep_compiled() -> None:
    """From now on, in this process and those that it starts."""
    folder = os.environ.get(FOLDER) or _own_folder()
    if folder is not None:
        os.environ.setdefault(FOLDER, str(folder))
        os.environ.setdefault(SHORTEST, WORTH_KEEPING)
        # A file that cannot be read or written is no error: the function is compiled again.
        warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache")


def kept_in() -> Path | None:
    """The folder, where there is one."""
    return Path(os.environ[FOLDER]) if os.environ.get(FOLDER) else None


def _own_folder() -> Path | None:
    """The user's folder for such things, if it can be written, and by nobody else."""
    try:
        folder = _caches() / "tapegrad" / "xla"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        theirs = os.name == "posix" and (
            folder.stat().st_uid != os.getuid() or folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        )
        if theirs or not os.access(folder, os.W_OK):
            return None
        _tidy(folder)
    except (OSError, RuntimeError):  # no place, or no home
        return None
    return folder


def _caches() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _tidy(folder: Path) -> None:
    """JAX writes no file over another, so one that was left empty would be in the way for ever."""
    sizes = {Path(entry.path): entry.stat().st_size for entry in os.scandir(folder) if entry.is_file()}
    full = sum(sizes.values()) > LARGEST_FOLDER
    for path, size in sizes.items():
        if full or not size:
            with contextlib.suppress(OSError):
                path.unlink()
