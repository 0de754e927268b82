"""The limits of gradient descent (Abbe, Sandon, sections 5 and 6): `python -m bench.limits [--long]`."""

import argparse
from typing import Any

from tapegrad_papers.experiments import limits


def rows() -> list[dict[str, Any]]:
    """The table of the quick run."""
    return limits.rows(limits.limits())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="larger sizes")
    parser.add_argument("--figures", default="bench/out", help="folder for the figure")
    options = parser.parse_args()
    found = limits.limits(options.long)
    for row in limits.rows(found):
        print(row)
    print(limits.figure(found, options.figures))


if __name__ == "__main__":
    main()
