"""The limits of gradient descent (Abbe, Sandon, sections 5 and 6): `python -m bench.limits [--long]`."""

import argparse
from typing import Any

from tapegrad_papers.abbe_sandon import table


def rows() -> list[dict[str, Any]]:
    """The table of the quick run."""
    return table.rows(table.limits())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="larger sizes")
    parser.add_argument("--figures", default="bench/out", help="folder for the figure")
    options = parser.parse_args()
    found = table.limits(options.long)
    for row in table.rows(found):
        print(row)
    print(table.figure(found, options.figures))


if __name__ == "__main__":
    main()
