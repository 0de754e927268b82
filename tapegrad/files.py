"""Writing files so that a reader never sees half of one."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tapegrad.errors import InputError


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Writes beside the file first, then puts it in place in one step."""
    path = Path(path)
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(file.name, 0o644)
        os.replace(file.name, path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def write_folder(path: str | os.PathLike[str], files: Mapping[str, bytes]) -> None:
    """Writes a whole folder, or nothing. A folder that is there already is only replaced if it holds
    nothing but files of these names."""
    folder = Path(path)
    if folder.exists():
        strange = (
            [p.name for p in folder.iterdir() if p.name not in files] if folder.is_dir() else [folder.name]
        )
        if strange:
            raise InputError(
                f"{folder} exists and holds {strange[0]!r}, which this program did not write",
                advice="Choose a new folder.",
            )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}") from error
    try:
        for name, content in files.items():
            write_atomically(fresh / name, content)
        fresh.chmod(0o755)
        if folder.exists():
            old = fresh.with_name(fresh.name + ".old")
            folder.rename(old)
            fresh.rename(folder)
            shutil.rmtree(old)
        else:
            fresh.rename(folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
