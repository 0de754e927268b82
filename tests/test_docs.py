"""The documentation is true: its Python runs, it prints what the page shows, and its links lead somewhere.

Every Python block and every `$ tapegrad ...` command of a page is run, in order, in a folder of its own. What
it prints is compared with what the page shows: below a Python block the next block without a language (fenced
or indented, with nothing in between), below a command the lines up to the next command. A block that prints
something has to show it. The comparison is word by word, so a page may break a long line. In the shown text
`...` stands for any characters without a space (a time, say), and a line that is only `...` for any number of
lines.

A comment on the line before a block says when it is not run: `<!-- slow -->` (only by `make test-all`),
`<!-- needs torch -->` (only where that package is installed), `<!-- not run: reason -->`, and
`<!-- recipe: name -->` (run by tests/interop). Other commands (`$ python -m bench ...`) are not run.
"""

import difflib
import importlib.util
import itertools
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest

import tapegrad
from tapegrad.commands.run import LONG

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
WIDTH = 120
"""Columns of a block: as many as the command line uses where its output is not a terminal."""
COMMAND = re.compile(r"\$ (?:\.venv/bin/)?(tapegrad .*|make demo)")
RUNNER = """
import contextlib, io, json, linecache, os, shlex, sys, traceback
from tapegrad.cli import main

for line in sys.stdin:
    folder, steps = json.loads(line)
    os.chdir(folder)
    names, printed = {"__name__": "page"}, []
    for kind, text in steps:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                if kind == "python":
                    linecache.cache["<page>"] = len(text), None, text.splitlines(True), "<page>"
                    exec(compile(text, "<page>", "exec"), names)
                else:
                    sys.argv = shlex.split(text, comments=True)
                    main()
            except SystemExit:
                pass
            except BaseException:
                traceback.print_exc(file=out)
        printed.append(out.getvalue())
    print(json.dumps(printed), flush=True)
"""
"""Reads the folder and the steps of a page as a line of JSON, runs them, and writes what each of them printed
as a line of JSON. One process serves all pages, so that JAX is loaded once; each page has its own names, and
imports what it uses."""


@dataclass(frozen=True)
class Step:
    """One thing that a page runs, and what the page shows of its output."""

    kind: str
    text: str
    shown: str
    line: int
    marks: tuple[str, ...] = ()

    @property
    def slow(self) -> bool:
        return "slow" in self.marks

    @property
    def runs(self) -> bool:
        """Whether it can be run here at all."""
        needs = [mark.removeprefix("needs ") for mark in self.marks if mark.startswith("needs ")]
        elsewhere = any(mark.startswith(("not run:", "recipe:")) for mark in self.marks)
        return not elsewhere and all(importlib.util.find_spec(name) for name in needs)


@dataclass(frozen=True)
class Block:
    """A fenced or an indented block of a page."""

    language: str
    text: str
    line: int
    marks: tuple[str, ...]
    adjoins: bool
    """Whether only blank lines stand between the block before and this one."""


def blocks_of(page: str) -> list[Block]:
    """All blocks of a page, with the comments on the lines before them."""
    blocks: list[Block] = []
    marks: list[str] = []
    lines, at, adjoins = page.splitlines(), 0, False
    while at < len(lines):
        first, fence = at, re.fullmatch(r"```(\w*)", lines[at])
        if fence:
            end = lines.index("```", at + 1)
            text, at = lines[at + 1 : end], end + 1
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
                at += 1
            text = [line[4:] for line in lines[first:at]]
        else:
            comment = re.fullmatch(r"<!-- (.*) -->", lines[at])
            marks = [*marks, comment[1]] if comment else marks if not lines[at].strip() else []
            adjoins = adjoins and not lines[at].strip()
            at += 1
            continue
        language = fence[1] if fence else ""
        blocks.append(Block(language, "\n".join(text).strip("\n"), first + 1, tuple(marks), adjoins))
        marks, adjoins = [], True
    return blocks


def steps_of(page: Path) -> list[Step]:
    """What a page runs, in order, with what it shows of the output."""
    steps: list[Step] = []
    blocks = blocks_of(page.read_text())
    for block, after in itertools.pairwise([*blocks, Block("end", "", 0, (), False)]):
        if block.language == "python":
            output = after.adjoins and after.language in ("", "text") and not COMMAND.match(after.text)
            shown = after.text if output else ""
            steps.append(Step("python", block.text, shown, block.line, block.marks))
        elif block.language in ("", "console"):
            parts = re.split(r"^(?=\$ )", block.text, flags=re.MULTILINE)
            for part in parts:
                command, _, shown = part.partition("\n")
                if found := COMMAND.fullmatch(command):
                    text = "tapegrad demo" if found[1] == "make demo" else found[1]
                    steps.append(Step("command", text, shown, block.line, block.marks))
    return [step for step in steps if step.runs]


def agrees(shown: str, printed: str) -> bool:
    """Whether a page's text is what was printed, word by word, up to what `...` stands for."""
    pattern = ""
    for line in shown.splitlines():
        if line.strip() == "...":
            pattern += r"(?:\S+\s+)*?"
        else:
            for word in line.split():
                pattern += r"\S*".join(map(re.escape, word.split("..."))) + r"\s+"
    return re.fullmatch(pattern, printed.strip() + "\n" if printed.strip() else "") is not None


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("17 steps\nagreed", "17 steps agreed\n", True),
        ("17 steps", "18 steps", False),
        ("17 steps", "17 steps\nmore", False),
        ("", "", True),
        ("", "something", False),
        ("in ... s, done", "in 1.37 s, done", True),
        ("in ... s, done", "in 1.37 h, done", False),
        ("in ... s", "in 1 2 s", False),
        ("first\n...\nlast", "first\na\nb c\nlast\n", True),
        ("first\n...\nlast", "first\na\nb c\nlost\n", False),
        ("first\n...", "first\n", True),
    ],
)
def test_the_comparison_bites(shown: str, printed: str, same: bool) -> None:
    assert agrees(shown, printed) is same


@pytest.fixture(scope="module")
def runner() -> Iterator[subprocess.Popen[str]]:
    """The process in which pages are run."""
    command = [sys.executable, "-c", RUNNER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def run_page(steps: list[Step], folder: Path, runner: subprocess.Popen[str]) -> None:
    """Runs the steps and compares what they print."""
    assert runner.stdin is not None
    assert runner.stdout is not None
    runner.stdin.write(json.dumps([str(folder), [(step.kind, step.text) for step in steps]]) + "\n")
    runner.stdin.flush()
    answer = runner.stdout.readline()
    assert answer, "the process that runs the pages has ended"
    wrong: list[str] = []
    for step, printed in zip(steps, json.loads(answer), strict=True):
        if not agrees(step.shown, printed):
            lines = step.shown.splitlines(), printed.splitlines()
            wrong += [f"\nline {step.line}: {step.text.splitlines()[0]}"]
            wrong += difflib.unified_diff(*lines, "shown", "printed", lineterm="", n=1)
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.mark.parametrize(
    "page", [p for p in PAGES if any(not s.slow for s in steps_of(p))], ids=lambda p: p.name
)
def test_a_page_prints_what_it_shows(page: Path, tmp_path: Path, runner: subprocess.Popen[str]) -> None:
    run_page([step for step in steps_of(page) if not step.slow], tmp_path, runner)


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if any(s.slow for s in steps_of(p))], ids=lambda p: p.name)
def test_a_long_page_prints_what_it_shows(page: Path, tmp_path: Path, runner: subprocess.Popen[str]) -> None:
    run_page(steps_of(page), tmp_path, runner)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_no_line_of_a_block_is_cut_at_the_right(page: Path) -> None:
    for block in blocks_of(page.read_text()):
        for line in block.text.splitlines():
            assert len(line) <= WIDTH, f"{page.name}, block at line {block.line}: {line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    for name in re.findall(r"`((?:tapegrad\w*|tests|bench|docs|examples)/[\w/.-]*)`", page.read_text()):
        assert (ROOT / name).exists(), f"{page.name} names {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def words(page: str) -> str:
    """The text of a page on one line."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def test_the_readme_says_which_commands_need_the_repository() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]
    named = {name.split(".")[0] for name in re.findall(r"python -m ([\w.]+)", words("README.md"))}
    missing = {name for name in named if not any(fnmatch(name, wanted) for wanted in packages["include"])}
    assert missing == {"bench"}
    for name in missing:
        assert f"`python -m {name}` is in the repository only, and not installed" in words("README.md")


def test_pages_say_that_long_runs_are_compared_at_some_steps_only() -> None:
    assert f"`run` compares at every step up to {LONG:,} steps" in words("docs/limits.md")
    for page in ("README.md", "docs/index.md"):
        assert "Every step is compared" not in words(page)


def test_the_readme_has_the_compile_times_that_were_measured_side_by_side() -> None:
    seconds = [
        re.search(
            rf"29,208 gates: compile, {form} form, processor time \| ([\d.]+) \|", words("docs/benchmarks.md")
        )
        for form in ("practical", "paper")
    ]
    compact, paper = (f"{float(found[1]):.1g}" for found in seconds if found)
    row = f"29,208-gate multiplier, compiled (`python -m bench relu`, processor time) | in {compact} s |"
    assert f"{row} in the paper's form {paper} s |" in words("README.md")


def test_the_last_row_of_the_table_of_mutants_is_the_sum_of_the_others() -> None:
    """Mutants, equivalent ones, and how many of each sample were noticed."""
    rows = re.findall(
        r"^\| (`tapegrad\S*`|all) \| ([\d,]+) \| ([\d,]+) \| (.*?) \| (.*?) \|.*\| (\d+)% \|$",
        (ROOT / "docs/limits.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    counts = []
    for _, mutants, equivalent, before, after, score in rows:
        shares = [part.split(" of ") if part != "-" else ("0", "0") for part in (before, after)]
        numbers = [int(n.replace(",", "")) for n in (mutants, equivalent, *shares[0], *shares[1])]
        assert round(100 * numbers[4] / numbers[5]) == int(score)
        counts.append(numbers)
    assert len(counts) > 100
    assert [sum(column) for column in zip(*counts[:-1], strict=True)] == counts[-1]


def test_the_reference_has_all_that_is_exported() -> None:
    documented = re.findall(
        r"^::: tapegrad\S*?\.(\w+)$", (ROOT / "docs/reference.md").read_text(), re.MULTILINE
    )
    assert set(tapegrad.__all__) <= set(documented)


def test_the_site_draws_formulas_and_frames_players() -> None:
    """What docs/figures/pages.py makes of a page; code is left alone."""
    for package in ("mkdocs", "latex2mathml"):
        pytest.importorskip(package)
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs/figures/pages.py")
    assert spec is not None
    assert spec.loader is not None
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    code = "`$a$` and\n\n    $ tapegrad run $b$\n\n```\n$c$ $d$\n```\n"
    assert pages.drawn(code) == code
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in pages.drawn("so $x^2$ it is")
    assert 'display="block"' in pages.drawn("$$x$$")
    framed = pages.framed("[Title](player.md): `tapegrad show increment -o a.html`", "relu/")
    assert '<iframe class="player" src="../players/a.html#play"' in framed
    assert pages.players == {"a.html": "show increment -o a.html"}
    with pytest.raises(pages.PluginError):
        pages.framed("[Title](player.md): `tapegrad show palindrome -o a.html`", "relu/")
    for page in PAGES:  # nothing that looks like a formula is left as it was
        rest = re.sub(r"```.*?```|`[^`]+`|^    .*?$", "", pages.drawn(page.read_text()), flags=re.S | re.M)
        assert not re.search(r"\$[^$\n]*\\[a-z]+", rest), page
