"""`tapegrad-check FOLDER`: the certificate of a saved net, re-derived from its weights."""

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
        description="Re-derive the certificate of a network that tapegrad saved from its weights alone, "
        "without the compiler.",
        epilog="Exit code: 0 the certificate holds, 1 it does not, 2 bad input (not a saved network, or one "
        "that this version cannot check), 70 internal error, 130 interrupted, 143 terminated. "
        "Example: tapegrad-check adder8.net",
    )
    parser.add_argument("folder", metavar="FOLDER", help="a folder that `tapegrad compile` or `save` wrote")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--traceback", action="store_true", help=f"show tracebacks, as {TRACEBACK}=1 does")
    given = parser.parse_args(arguments)
    if given.traceback:
        os.environ[TRACEBACK] = "1"
    return guarded(lambda: _checked(given.folder, given.json), as_json=given.json)


def _checked(folder: str, as_json: bool) -> int:
    try:
        report = check(folder)
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
