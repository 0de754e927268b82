"""`tapegrad-check FOLDER`: the certificate of a saved net, re-derived from its weights."""

import argparse
import json
import os
import sys
from collections.abc import Sequence

from tapegrad_check import CheckError, Unchecked, check

FAILED, BAD_INPUT = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks one folder and says what was re-derived; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="tapegrad-check",
        description="Re-derive the certificate of a network that tapegrad saved from its weights alone, "
        "without the compiler.",
        epilog="Exit code: 0 the certificate holds, 1 it does not, 2 bad input (not a saved network, or one "
        "that this version cannot check). Example: tapegrad-check adder8.net",
    )
    parser.add_argument("folder", metavar="FOLDER", help="a folder that `tapegrad compile` or `save` wrote")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    given = parser.parse_args(arguments)
    try:
        report = check(given.folder)
    except CheckError as error:
        if given.json:
            print(json.dumps({"error": error.what, "where": error.where, "advice": error.advice}))
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT if isinstance(error, Unchecked) else FAILED
    try:
        print(json.dumps(report.to_json(), indent=1) if given.json else report, flush=True)
    except BrokenPipeError:  # the reader has seen enough; Python would complain again when it flushes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
