"""Section 6.1's parities, by a compiled network and by an ordinary one; see `tapegrad bench parity`."""

from tapegrad_papers.abbe_sandon import parity


def rows() -> list[dict]:
    """The headline, other sizes, and label noise."""
    return parity.rows()


if __name__ == "__main__":
    for row in rows():
        print(row)
