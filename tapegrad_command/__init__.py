"""The program `tapegrad`, as it is installed. Loading the compiler takes a while, in which the user may press
Ctrl-C; what is loaded before that can be dealt with has to be next to nothing, hence a package of its own."""

import atexit
import os
import signal
import sys
from typing import NoReturn

STOPPED = (130, 143)
"""The exit codes of a program that was stopped by Ctrl-C or SIGTERM."""


def main() -> None:
    """Loads the command line, and runs it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a script's shell has started us in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        from tapegrad.cli import main as command_line  # what takes a while
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    try:
        command_line()
    except SystemExit as left:
        if left.code in STOPPED:
            _leave(left.code)
        raise


def _leave(code: int) -> NoReturn:
    """Ends the process at once. JAX crashes, with a signal instead of an exit code, when Python takes itself
    apart after a compilation was interrupted; and threads need not be waited for."""
    atexit._run_exitfuncs()
    os._exit(code)
