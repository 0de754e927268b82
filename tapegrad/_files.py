"""Reading what may not be a file at all; writing files so that a reader never sees half of one, and the
folder of a saved net in particular."""

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as tensors_to_bytes

import tapegrad_check
from tapegrad.errors import BrokenNet, FormatError, InputError, TapegradError, described
from tapegrad_check.boundary import FULL
from tapegrad_check.folder import AGAIN, CERTIFICATE, CONFIG, LIMITS, MODEL, NETWORK, VERSION, Folder

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

EXTENDED = "extended"
"""What stands for the target where a trained extended network was saved (`tapegrad.targets.extended`)."""

_FRESH = 2.0
"""Seconds within which a hidden folder may have been made and not yet locked."""


READABLE = 1 << 20
"""Bytes of a JSON file up to which it is broken into lines, for people."""
LARGEST = 256 << 20
"""Files that users give are not read if they are larger than this, in bytes."""

_NO_NAME = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL}


_files_are_read = ContextVar("files_are_read", default=True)


@contextmanager
def no_files() -> Iterator[None]:
    """Inside, a text that a user typed is never the name of a file: it may come from a web page."""
    token = _files_are_read.set(False)
    try:
        yield
    finally:
        _files_are_read.reset(token)


def files_are_read() -> bool:
    """Whether a text may name files."""
    return _files_are_read.get()


def content_of(name: str) -> bytes | None:
    """What a file holds; None where no file has this name, or none could, since it is a text. A device or a
    pipe may block or never end, so it is refused."""
    if not _files_are_read.get():
        return None
    try:
        found = os.stat(name)
        if stat.S_ISDIR(found.st_mode):
            return None
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{name} is not a regular file", advice="Write it to a file first.")
        if found.st_size > LARGEST:
            raise FormatError(f"{name} is larger than {LARGEST >> 20} MiB")
        with open(name, "rb") as file:
            return file.read(LARGEST)
    except ValueError:  # a null character
        return None
    except OSError as error:
        if error.errno in _NO_NAME:
            return None
        raise InputError(f"{name} cannot be read: {error.strerror}") from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the system does not let us write is the user's to mend, but for a lack of room, which has an exit
    code of its own. A device stays what it is."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise InputError(f"{path} is not a regular file", advice="Choose a new name.")
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def write_atomically(path: str | os.PathLike[str], content: bytes, *, executable: bool = False) -> None:
    """Writes beside the file first, then puts it in place in one step. A program that is stopped on the way
    takes the unfinished file with it."""
    path = Path(path)
    with writing(path):
        number, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with open(number, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(unfinished, 0o755 if executable else 0o644)
            os.replace(unfinished, path)
        finally:
            with contextlib.suppress(FileNotFoundError):  # it is in place
                os.unlink(unfinished)


def write_folder(
    path: str | os.PathLike[str], files: Mapping[str, bytes], replaces: Collection[str] = ()
) -> None:
    """Writes a folder of these files, in one step: whenever a program is killed, the old folder or the new
    one is there under its name, whole. One that is there already is only replaced if it holds nothing but
    files of these names, or of those that it `replaces`.

    All files are written in a hidden folder beside it, which then takes the name, or changes places with the
    folder that has it. The hidden folder is locked as long as its writer lives, so that the next one knows
    which of them a killed program has left behind.
    """
    folder = Path(path)
    with writing(folder):
        if folder.exists():
            found = [p.name for p in folder.iterdir()] if folder.is_dir() else [folder.name]
            strange = [name for name in found if name not in {*files, *replaces}]
            if strange:
                raise InputError(
                    f"{folder} exists and holds {strange[0]!r}, which this program did not write",
                    advice="Choose a new folder.",
                )
        unfinished = f".{folder.name}.unfinished-"
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_left_behind(folder.parent, unfinished)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=unfinished))
        lock = _locked(fresh)
        try:
            for name, content in files.items():
                write_atomically(fresh / name, content)
            fresh.chmod(0o755)
            if not folder.exists():
                fresh.rename(folder)
            elif not _exchanged(fresh, folder):
                for name in files:  # the last carries the sums of the others, so a mixture is refused
                    os.replace(fresh / name, folder / name)
                for name in {*replaces} - files.keys():
                    (folder / name).unlink(missing_ok=True)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
            if lock is not None:
                os.close(lock)


def _exchanged(one: Path, other: Path) -> bool:
    """Whether two folders have changed places, in one step; not every system can do that."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
    return call(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


def _locked(folder: Path) -> int | None:
    """A lock on a folder, which ends with the process; None where another holds it, or where
    there are no such locks."""
    if fcntl is None:
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Inside, no other program that asks writes to this folder, which is made if it is not there."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = _locked(folder)
    if lock is None and fcntl is not None:
        raise InputError(
            f"another program is writing to {folder}", advice="Wait for it, or choose another folder."
        )
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _remove_left_behind(parent: Path, unfinished: str) -> None:
    """Removes hidden folders whose writer is gone. One that was just made may not be locked yet."""
    for left in parent.iterdir():
        if left.name.startswith(unfinished):
            with contextlib.suppress(OSError):  # it may vanish, or be someone else's
                if time.time() - left.stat().st_mtime < _FRESH:
                    continue
                lock = _locked(left)
                if lock is not None:
                    shutil.rmtree(left)
                    os.close(lock)


def line_sum(entry: Mapping[str, Any]) -> str:
    """The sum of a line: of its JSON with sorted keys, but for the sum itself."""
    rest = {name: value for name, value in entry.items() if name != "line_sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def write_net(
    path: str | os.PathLike[str],
    config: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    claims: Mapping[str, Any],
    network: Mapping[str, Any] | None = None,
) -> None:
    """The files of a net; the certificate, last, holds the claims and the sums of the others."""
    files = {CONFIG: _json({"version": VERSION, "tapegrad": metadata.version("tapegrad"), **config})}
    if network is not None:
        files[NETWORK] = _json(network)
    files[MODEL] = tensors_to_bytes({name: np.asarray(array, order="C") for name, array in arrays.items()})
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    certificate = {"version": VERSION, "target": config["target"], "claims": claims, "sha256": sums}
    write_folder(path, {**files, CERTIFICATE: _json(certificate)}, replaces=LIMITS)


def read_net(path: str | os.PathLike[str]) -> Folder:
    """The files of a net, parsed, once their sums agree; `BrokenNet` says what is wrong with them."""
    with what_is_broken(path):
        return tapegrad_check.read_folder(path)


@contextmanager
def what_is_broken(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever goes wrong while a net is read and put together from its files is the files' fault."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"the path of a saved net is needed, and this is {described(path)}",
            advice='Write tg.save(net, "my.net") first, and then "my.net" here.',
        )
    try:
        yield
    except BrokenNet:
        raise
    except tapegrad_check.CheckError as error:
        raise BrokenNet(error.what, where=error.where, advice=error.advice) from error
    except TapegradError as error:
        raise BrokenNet(f"the net cannot be loaded: {error}", where=str(path)) from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise BrokenNet(
            f"the net lacks something that its target needs: {type(error).__name__} {error}",
            where=str(path),
            advice=AGAIN,
        ) from error


def _json(data: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
        if len(text) > READABLE:
            text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return (text + "\n").encode()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the net was compiled with an option that cannot be saved: {error}",
            advice="Give inputs as lists of words.",
        ) from error
