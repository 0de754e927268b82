"""The independent checker of saved nets: `check(folder)`, and `tapegrad-check FOLDER` on the command line.

It shares no code with the compiler: NumPy, safetensors and the standard library are all it trusts, so that a
fault in the compiler cannot hide itself here. Each target has a checker in the file of its name. What proves
is loaded when something is to be proved: whoever reads or writes a folder does without.
"""

import os
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad_check.folder import (
    AGAIN,
    COMPUTES_SOURCE,
    CONFIG,
    DISGUISED,
    MODEL,
    OWN_TABLE,
    SOURCE,
    WITH_TRAINING,
    Arrays,
    Checked,
    CheckError,
    Folder,
    NotProved,
    Unchecked,
    read_folder,
    require,
    tested_on,
)

if TYPE_CHECKING:
    from tapegrad_check.graph import Graph
    from tapegrad_check.passes import Bound
    from tapegrad_check.sources import Model

__all__ = ["CheckError", "CheckReport", "SourceSaved", "Unchecked", "check", "check_folder", "read_folder"]

TARGETS = "simplex", "tape", "emulator", "extended", "decoder", "rcnn", "relu", "transformer"
"""Those that have a checker."""

SIZES = {"gates": "kinds", "rules": "rules", "bytes": "image", "operations": "nodes"}
"""What a source is measured in, by the array or list that holds as many."""
NOT_PROVED, TESTED, BOUNDED, IN_PART = 4, 5, 6, 7
"""Exit codes of verdicts that are weaker than a proof of everything for all inputs. Those of refusals are in
`__main__`."""


@dataclass(frozen=True)
class SourceSaved:
    """The source in a folder, by which a reader knows what the verdict is about."""

    kind: str
    name: str
    size: str
    sha256: str
    """The sum of all of it but its name (`sources.digest_of`)."""

    @classmethod
    def of(cls, folder: Folder) -> "SourceSaved | None":
        """None of a net in disguise, whose source stands in its answer key."""
        from tapegrad_check.sources import digest_of

        data = folder.config.get("source")
        if not data:
            return None
        arrays = folder.part(SOURCE)
        parts = {what: arrays.get(part, data.get(part)) for what, part in SIZES.items()}
        size = next((f"{len(part):,} {what}" for what, part in parts.items() if part is not None), "")
        return cls(str(data["kind"]), str(data.get("name", "")), size, digest_of(data, arrays))

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}, {self.size}, sha256 {self.sha256}"


@dataclass(frozen=True)
class CheckReport:
    """What was proved of a saved net, from its files alone."""

    folder: str
    target: str
    verdict: str
    """"computes this source, for all inputs", or less: "computes this source, for the first n samples",
    "computes its own table; source not checked", "tested on n inputs"; and what was "not compared"."""
    statements: tuple[str, ...]
    source: SourceSaved | None = None

    @property
    def code(self) -> int:
        """The exit code of commands that check: 0 for nothing less than a proof for all inputs."""
        from tapegrad_check.targets import classifiers, emulator

        if self.verdict == COMPUTES_SOURCE:
            return 0
        if classifiers.NOT_COMPARED in self.verdict:
            return IN_PART
        if self.verdict.startswith(emulator.PROVED):
            return BOUNDED
        return TESTED if self.verdict.startswith("tested on") else NOT_PROVED

    def require_source(self, sha256: str) -> None:
        """`CheckError` unless the source in the folder has this sum."""
        if self.source is None or self.source.sha256 != sha256.strip().lower():
            own = "no source" if self.source is None else f"a {self.source}"
            raise CheckError(
                f"the folder holds another source than yours: it holds {own}; yours has the sum {sha256}",
                where=self.folder,
                advice="Compile your source, or give the one that the net was compiled from.",
            )

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON."""
        return asdict(self)

    def __str__(self) -> str:
        first = f"{self.folder} ({self.target}): {self.verdict}"
        of = [] if self.source is None else [f"  source: {self.source}"]
        return "\n".join([first, *of, *(f"  - {statement}" for statement in self.statements)])


def checked_by(
    target: str,
    config: dict[str, Any],
    own: Arrays,
    claims: dict[str, Any],
    source: "Model | None",
    graph: "Graph | None" = None,
) -> Checked:
    """What the checker of a target proves of a net: from its config, its own arrays, the claims, and the
    source that it must be of; of a target `WITH_NETWORK` from its graph, too. Every name and number that the
    loader reads is bound to that source, or to the arrays; where it is None, because the way to it is not
    proved, the net is checked against its own table alone."""
    require(
        graph is None or graph.training is None or target in WITH_TRAINING,
        "a net of this target is not trained while it runs",
    )
    checker = import_module(f"tapegrad_check.targets.{target}").check
    given = (config, own, claims, source)
    return checker(*given) if graph is None else checker(*given, graph)


def check(path: str | os.PathLike[str], of: str | os.PathLike[str] | None = None) -> CheckReport:
    """Proves what can be proved of a saved net; `CheckError` says what does not hold. With `of`, the path is
    that of a stock checkpoint, which must be the net that is saved there."""
    return check_folder(read_folder(path if of is None else of), path, of)


def check_folder(
    folder: Folder, path: str | os.PathLike[str], of: str | os.PathLike[str] | None = None
) -> CheckReport:
    """The same of a folder that has been read."""
    from tapegrad_check.passes import Bound
    from tapegrad_check.rasp import answer_key
    from tapegrad_check.targets import classifiers, emulator, stock

    exported, path = path, path if of is None else of
    target = folder.config["target"]
    if target not in (*TARGETS, DISGUISED):
        raise Unchecked(
            f"there is no checker for the target {target!r}",
            where=f"{path}/{CONFIG}",
            advice=f"Checked targets are {', '.join(TARGETS)}.",
        )
    try:
        # Numbers of a genuine net never overflow here, so that one which does is a reason to refuse it.
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            if target == DISGUISED:
                own, checked = answer_key.check_folder(path, folder)
                bound = Bound(own, "", ())
            else:
                bound, checked = _checked(folder)
            same = [] if of is None else stock.compare(exported, folder)
            beside = classifiers.check(folder)
            source = SourceSaved.of(folder)
    except NotProved as error:
        raise Unchecked(f"this version has no proof of it: {error}", where=str(path)) from error
    except FloatingPointError as error:
        raise CheckError(f"a number is out of range: {error}", where=str(path), advice=AGAIN) from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise CheckError(
            f"the net lacks something that its target needs: {type(error).__name__} {error}",
            where=str(path),
            advice=AGAIN,
        ) from error
    statements = [f"{MODEL} and {CONFIG} have the sums that the certificate was issued for"]
    verdict = checked.verdict
    if bound.source is None:
        statements.append(f"the source was not checked: {bound.reason}")
    if verdict.startswith(emulator.PROVED):  # bounded or not, it holds no more than the way to the net does
        if bound.source is None:
            verdict = OWN_TABLE
        elif bound.tested is not None:
            verdict = tested_on(bound.tested)
    statements += [*bound.statements, *checked.statements, *same, *beside]
    if beside:
        verdict += f"; {classifiers.NOT_COMPARED}"
    return CheckReport(str(exported), target, verdict, tuple(statements), source)


def _checked(folder: Folder) -> "tuple[Bound, Checked]":
    """A net beside what the passes give; beside its own table alone where that cannot be compared."""
    from tapegrad_check.graph import graph_in
    from tapegrad_check.passes import Bound, bound_source

    bound, graph = bound_source(folder), graph_in(folder)

    def beside(source: "Model | None") -> Checked:
        return checked_by(
            folder.config["target"],
            folder.config["net"],
            folder.own,
            folder.certificate["claims"],
            source,
            graph,
        )

    try:
        return bound, beside(bound.source)
    except NotProved as reason:
        if bound.source is None:
            raise
        return Bound(None, str(reason), ()), beside(None)
