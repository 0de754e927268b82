"""The program `tapegrad`, as it is installed. Loading the compiler takes a while, in which the user may press
Ctrl-C; what is loaded before that can be dealt with has to be next to nothing, hence a package of its own."""

import sys


def main() -> None:
    """Loads the command line, and runs it."""
    try:
        from tapegrad.cli import main as command_line  # what takes a while
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    command_line()
