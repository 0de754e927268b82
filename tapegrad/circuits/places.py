"""Where in the user's own code something happened."""

import sys
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)


def calling_line() -> str:
    """The innermost line outside this package, as `file.py, line 7`."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return ""
    return f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"
