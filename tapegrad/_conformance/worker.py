"""A process of its own for a runtime: `python -m tapegrad._conformance.worker JOBS RESULTS`.

JOBS is a file in JSON: the folder of a kit, and a list of jobs. For each job that is done, a line is added to
RESULTS; so whoever started it knows which job was the last if it does not end well.
"""

import json
import sys
import traceback
from pathlib import Path
from typing import Any

from tapegrad._conformance.judging import CRASH, judged, timed
from tapegrad._conformance.kit import read_kit


def main() -> None:
    """Does the jobs."""
    order, results = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    jobs = order["jobs"]
    members = {own.name: own for own in read_kit(Path(order["kit"]), {job["net"] for job in jobs})}
    for job in jobs:
        try:
            task = timed if order["speed"] else judged
            row = task(job["runtime"], job["level"], job["format"], members[job["net"]])
        except Exception as error:  # whatever a runtime raises is a row
            last = traceback.format_exception_only(error)[-1].strip()
            row = {"outcome": CRASH, "reason": last[:300]}
        with results.open("a") as file:
            file.write(json.dumps(_plain(row)) + "\n")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "reason": " ".join(row["reason"].split())}


if __name__ == "__main__":
    main()
