"""Every source on every target with no options at all, as a newcomer would type it:

    python -m bench.sweep                       # all ready sources, and an example of each format
    python -m bench.sweep FILE... -o found.jsonl   # files instead
    python -m bench.sweep --table -o found.jsonl   # only what was found before

For each pair `tapegrad run SOURCE -t TARGET`, then `tapegrad show SOURCE -t TARGET -o page.html`. Each must
run and agree with its source, or be refused soon, with a sentence that says what to do. (A circuit needs an
input, and `run` proposes one: that is tried then.) Commands are carried
out one after the other in a process that stays warm, and that is replaced when one takes too long. Results
are appended to a file, and what is in it is not done again.
"""

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tapegrad._sources import all_kinds, ready_names
from tapegrad.show.gallery import UNPRINTABLE
from tapegrad.targets import target_names

SECONDS = 180.0
"""After which a command is stopped, however busy the machine is."""
LONG, SOON = 60.0, 10.0
"""Seconds of processor time after which a command counts as one that hangs, and within which a refusal should
come."""
AT_ONCE = 40
"""Commands that one process carries out."""
ADVICE = "For this one: "
"""What a refusal says before the input that it proposes."""
OUTCOMES = {0: "verified", 1: "DISAGREES", 2: "refused", 3: "unfinished"}

Result = dict[str, Any]


class Runner:
    """A process that carries out commands."""

    def __init__(self, folder: str) -> None:
        self.folder, self.done = folder, 0
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "bench.sweep", "--serve"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=Path(__file__).parents[1])
        self.done = 0

    def carry_out(self, arguments: list[str]) -> Result:
        """How a command ended: exit code (None if it had to be stopped), what it said, and its seconds."""
        if self.done == AT_ONCE or self._process.poll() is not None:
            self.end()
            self._start()
        self.done += 1
        said, begin = Path(self.folder, "said"), time.perf_counter()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(said), *arguments]).encode() + b"\n")
        self._process.stdin.flush()
        answer = b""
        if select.select([self._process.stdout], [], [], SECONDS)[0]:
            answer = self._process.stdout.readline()
        seconds = time.perf_counter() - begin
        if not answer:
            self.end()
        code, spent = json.loads(answer) if answer else (None, None)
        text = said.read_text(errors="replace") if said.exists() else ""
        return {"code": code, "said": text[-2000:], "seconds": seconds, "processor": spent}

    def end(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()


def serve() -> None:
    """Carries out commands that come as lines of standard input; what they print goes to a file."""
    from tapegrad.cli import main

    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        said, *arguments = json.loads(line)
        file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(file, stream)
        sys.argv, began = ["tapegrad", *arguments], time.process_time()
        try:
            main()
            code: Any = 0
        except SystemExit as left:
            code = left.code or 0
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os.close(file)
        answers.write(json.dumps([code, time.process_time() - began]) + "\n")
        answers.flush()


def sources(folder: Path) -> Iterator[str]:
    """Everything that is ready, and an example of each format, as a file in this folder."""
    yield from ready_names()
    for kind in all_kinds():
        for known in kind.formats:
            if known.name not in UNPRINTABLE:
                path = folder / f"{known.name.replace(' ', '-')}.txt"
                path.write_text(known.example)
                yield str(path)


def outcome(result: Result) -> str:
    """In a word."""
    if result["code"] is None or result["processor"] > LONG:
        return "HANGS OR DIES"
    if "Traceback" in result["said"] or "went wrong inside" in result["said"]:
        return "TRACEBACK"
    found = OUTCOMES.get(result["code"], f"EXIT CODE {result['code']}")
    if found == "verified" and result["command"] == "show":
        return "shown"
    return "refused late" if found == "refused" and result["processor"] > SOON else found


def table(results: list[Result]) -> str:
    """How many of each outcome, for each command and target; then what needs a look."""
    kinds = sorted({outcome(result) for result in results})
    lines = [f"| command | {' | '.join(kinds)} |", f"|---|{'---:|' * len(kinds)}"]
    for command in ("run", "run as told", "show"):
        for target in target_names():
            own = Counter(outcome(r) for r in results if (r["command"], r["target"]) == (command, target))
            lines.append(f"| `{command} -t {target}` | {' | '.join(str(own[k]) for k in kinds)} |")
    for result in results:
        if outcome(result) not in ("verified", "shown", "refused"):
            last = " ".join(result["said"].split())[-160:]
            lines.append(
                f"{outcome(result)}: {result['command']} {result['source']} -t {result['target']}: {last}"
            )
    return "\n".join(lines)


def sweep(names: list[str], output: Path, folder: str) -> list[Result]:
    """All results, those of earlier runs included."""
    results = [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []
    known = {(r["command"], r["source"], r["target"]) for r in results}
    runner = Runner(folder)
    page = ["-o", str(Path(folder, "page.html"))]

    def tried(command: str, name: str, target: str, more: list[str]) -> Result:
        result: Result = {"command": command, "source": name, "target": target}
        result |= runner.carry_out([command.split()[0], name, "-t", target, *more])
        results.append(result)
        with output.open("a") as file:
            file.write(json.dumps(result) + "\n")
        shown = f"{outcome(result):<14} {command} {name!r} -t {target} {' '.join(more)}"
        print(f"{result['seconds']:6.1f} s  {shown}", flush=True)
        return result

    try:
        for name in names:
            for target in target_names():
                for command, more in (("run", []), ("show", page)):
                    if (command, name, target) not in known:
                        result = tried(command, name, target, more)
                        if (advised := result["said"].rpartition(ADVICE)[2]) != result["said"]:
                            tried("run as told", name, target, advised.split())
    finally:
        runner.end()
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Every source on every target, with no options.")
    parser.add_argument("sources", nargs="*")
    parser.add_argument("-o", "--output", type=Path, default=Path("sweep.jsonl"))
    parser.add_argument("--table", action="store_true", help="only print what was found before")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve()
        sys.exit()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and so end the other process too
    with tempfile.TemporaryDirectory() as own:
        examples = asked.output.with_suffix(".examples")
        if not (asked.table or asked.sources):
            examples.mkdir(exist_ok=True)
        names = [] if asked.table else asked.sources or list(sources(examples))
        print(table(sweep(names, asked.output, own)))
