"""`tapegrad-check FOLDER`: a saved net is proved to compute its source, from its files alone."""

import argparse
import os
import sys
from collections.abc import Sequence

from tapegrad_check import CheckError, Unchecked, check
from tapegrad_check.boundary import TRACEBACK, complain, guarded, print_json, printable, silent_when_closed

FAILED, BAD_INPUT = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks one folder and says what was re-derived; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="tapegrad-check",
        description="Prove that a network that tapegrad saved computes its source, from its files alone, "
        "without the compiler.",
        epilog="The first line says what was proved: that it computes this source for all inputs, that it "
        "computes its own table, or that it was tested. "
        "Exit code: 0 that holds, 1 something does not, 2 bad input (not a saved network, or one "
        "that this version cannot check), 70 internal error, 71 no memory or disk space left, "
        "130 interrupted, 143 terminated. "
        "Example: tapegrad-check adder8.net",
    )
    parser.add_argument("folder", metavar="FOLDER", help="a folder that `tapegrad compile` or `save` wrote")
    parser.add_argument(
        "--of", metavar="NET", help="FOLDER is a stock model that `tapegrad export` wrote of this saved net"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--traceback", action="store_true", help=f"show tracebacks, as {TRACEBACK}=1 does")
    given = parser.parse_args(arguments)
    if given.traceback:
        os.environ[TRACEBACK] = "1"
    return guarded(lambda: _checked(given.folder, given.of, given.json), as_json=given.json)


def _checked(folder: str, of: str | None, as_json: bool) -> int:
    try:
        report = check(folder, of)
    except CheckError as error:
        complain(error, as_json=as_json)
        return BAD_INPUT if isinstance(error, Unchecked) else FAILED
    if as_json:
        print_json(report.to_json())
    else:
        with silent_when_closed():
            print(printable(str(report), keep="\n"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
