"""`tapegrad-check FOLDER`: a saved net is proved to compute its source, from its files alone."""

import argparse
import os
import sys
from collections.abc import Sequence

from tapegrad_check import BOUNDED, IN_PART, NOT_PROVED, TESTED, CheckError, Unchecked, check
from tapegrad_check.boundary import (
    INTERNAL_ERROR,
    INTERRUPTED,
    NO_ROOM,
    TERMINATED,
    TRACEBACK,
    complain,
    guarded,
    print_json,
    printable,
    silent_when_closed,
)

FAILED, BAD_INPUT = 1, 2
CODES = f"""\
exit codes:
  0    it computes this source, for all inputs: proved, and nothing less
  {FAILED}    something does not hold
  {BAD_INPUT}    bad input: no saved network, or one that this version cannot check
  {NOT_PROVED}    it computes its own table; source not checked: not all of it was proved
  {TESTED}    it was tested on so many inputs, not proved
  {BOUNDED}    it computes this source for the first samples, for so many as it says
  {IN_PART}    it computes this source; what it was trained to and what classes are called was not compared
  {INTERNAL_ERROR}   internal error
  {NO_ROOM}   no memory or disk space left
  {INTERRUPTED}  interrupted
  {TERMINATED}  terminated

example: tapegrad-check adder8.net && echo proved"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks one folder and says what was re-derived; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="tapegrad-check",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Prove that a network that tapegrad saved computes its source, from its files alone,\n"
        "without the compiler. The first line says what was proved, and so does the exit code.",
        epilog=CODES,
    )
    parser.add_argument("folder", metavar="FOLDER", help="a folder that `tapegrad compile` or `save` wrote")
    parser.add_argument(
        "--of", metavar="NET", help="FOLDER is a stock model that `tapegrad export` wrote of this saved net"
    )
    parser.add_argument(
        "--sha256", metavar="SUM", help="of the source that it must be, as the report of a check says it"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--traceback", action="store_true", help=f"show tracebacks, as {TRACEBACK}=1 does")
    given = parser.parse_args(arguments)
    if given.traceback:
        os.environ[TRACEBACK] = "1"
    return guarded(lambda: checked(given.folder, given.of, given.json, given.sha256), as_json=given.json)


def checked(folder: str, of: str | None, as_json: bool, sha256: str | None = None) -> int:
    """Checks a folder, says what holds or what does not, and gives the exit code."""
    try:
        report = check(folder, of)
        if sha256 is not None:
            report.require_source(sha256)
    except CheckError as error:
        complain(error, as_json=as_json)
        return BAD_INPUT if isinstance(error, Unchecked) else FAILED
    if as_json:
        print_json(report.to_json())
    else:
        with silent_when_closed():
            print(printable(str(report), keep="\n"), flush=True)
    return report.code


if __name__ == "__main__":
    sys.exit(main())
