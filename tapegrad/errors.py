"""Errors that a user can mend: each says what was wrong, where, and what to do about it."""

import sys
from pathlib import Path
from types import FrameType


class TapegradError(Exception):
    """Base of every error that stems from what the user gave; the command line exits with 2.

    `what` is a sentence, `where` a position ("line 3, column 7"), `advice` the next thing to try.
    """

    def __init__(self, what: str, *, where: str = "", advice: str = "") -> None:
        self.what, self.where, self.advice = what, where, advice
        position = f" ({where})" if where else ""
        sentence = what.rstrip(".") + position + "."
        between = "" if advice.startswith("\n") else " "
        super().__init__(f"{sentence}{between}{advice}".rstrip())


class FormatError(TapegradError):
    """A text or file is not what its format promises."""


class SourceError(TapegradError):
    """A machine, circuit or learner contradicts itself."""


class InputError(TapegradError):
    """An input does not fit the source or the net it was given to."""


class DataError(InputError, ValueError):
    """Data that a classifier cannot take; a ValueError too, as scikit-learn has it."""


class Refused(TapegradError):
    """The request is well formed but cannot be carried out exactly, or would be too large."""


class BrokenNet(TapegradError):
    """A saved net does not check out: altered, truncated or mixed up."""


def described(value: object) -> str:
    """A value that was given in place of something else: `the function f`, `the dict {'a': 1}`."""
    if value is None:
        return "None"
    text = getattr(value, "__name__", None) or repr(value)
    return f"the {type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


# Where in the user's own code something happened.


_PACKAGE = str(Path(__file__).parent)


def calling_frame() -> FrameType | None:
    """The innermost call outside this package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def calling_line() -> str:
    """The innermost line outside this package, as `file.py, line 7`."""
    frame = calling_frame()
    return "" if frame is None else f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"


def raising_line(error: BaseException) -> str:
    """The innermost line outside this package that an exception came through, as `file.py, line 7`."""
    found, at = "", error.__traceback__
    while at is not None:
        if not at.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            found = f"{Path(at.tb_frame.f_code.co_filename).name}, line {at.tb_lineno}"
        at = at.tb_next
    return found
