"""All that is done to check one RASP program has a limit: a folder of some kilobytes could take a day."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tapegrad as tg
from tapegrad._sources import read
from tapegrad_check import check
from tapegrad_check.folder import COMPUTES_SOURCE, OWN_TABLE, NotProved
from tapegrad_check.sources import rasp
from tapegrad_check.sources.rasp import Work
from tests.check.forging import Saved, bounded
from tests.check.small_sources import COUNT

TOKENS, SELECTOR = 0, 1
"""Of the program `COUNT`, whose third node is the width of the selector."""

Nodes = list[list[Any]]


def doubled(depth: int) -> Nodes:
    """Each selector reads the one before twice, so that there are 2^depth ways to the first."""
    return [["combine", "and", SELECTOR + n, SELECTOR + n] for n in range(depth)]


LARGE: dict[str, tuple[int, Callable[[], Nodes]]] = {
    "cases of functions": (2048, lambda: [["indices"], *[["apply", "//", 2, 2]] * 700]),
    "large tables": (4096, lambda: [["indices"], *[["apply", "+", 2, 2]] * 700]),
    "larger tables yet": (4096, lambda: [["indices"], ["apply", "+", 2, 2], ["apply", "*", 3, 3]]),
    "means": (100, lambda: [["indices"], ["full", True], ["select", "==", 2, 3], *[["mean", 0, 4, 2]] * 700]),
    "selectors of selectors": (3, lambda: doubled(60)),
}


def moved(node: Any, by: int) -> Any:
    """The number of a node, where others come in after the selector."""
    return node + by if node > SELECTOR else node


def with_nodes(folder: Path, length: int, more: Nodes) -> int:
    """The saved net of `COUNT` with more nodes after its selector; how many bytes it has."""
    tg.save(tg.compile(read(COUNT), "decoder"), folder)
    saved, by = Saved.of(folder), len(more)
    net = saved.config["net"]
    for source in (saved.config["source"], net["machine"]["source"]):
        source["length"], nodes = length, source["nodes"]
        last = SELECTOR + by if more[0][0] == "combine" else SELECTOR
        later = [["width", last], *([*own[:2], *(moved(n, by) for n in own[2:])] for own in nodes[3:])]
        source["nodes"], source["output"] = [*nodes[:2], *more, *later], moved(source["output"], by)
    net["heads"] = [moved(node, by) for node in net["heads"]]
    net["groups"] = [[[moved(node, by) for node in own], labels] for own, labels in net["groups"]]
    net["meanings"] = [[kind, moved(n, by) if kind == "raw" else n, row] for kind, n, row in net["meanings"]]
    saved.write(folder)
    return sum(file.stat().st_size for file in folder.iterdir())


@pytest.mark.parametrize("kind", LARGE)
def test_a_small_folder_is_soon_given_up(kind: str, tmp_path: Path) -> None:
    length, nodes = LARGE[kind]
    assert with_nodes(tmp_path / "net", length, nodes()) < 48_000
    with bounded(kind):
        report = check(tmp_path / "net")
    assert report.verdict == OWN_TABLE
    assert report.code == 4
    assert report.statements[-1].startswith("not everything was compared: ")


def test_the_same_nodes_are_no_trouble_if_they_are_few(tmp_path: Path) -> None:
    with_nodes(tmp_path / "net", 3, doubled(3))
    assert check(tmp_path / "net").verdict == COMPUTES_SOURCE


def test_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rasp, "MOST_IN_ALL", 10)
    work = Work()
    for amount in (3, 0.5, 6.5):
        work.spend(amount)
    with pytest.raises(NotProved, match="too many cases in all"):
        work.spend(1)
    work = Work()
    work.allow(1 << 10)
    assert work.left == 10 + (1 << 10)
