"""The independent checker of saved nets: `check(folder)`, and `tapegrad-check FOLDER` on the command line.

It shares no code with the compiler: NumPy, safetensors and the standard library are all it trusts, so that a
fault in the compiler cannot hide itself here. Each target has a checker in the file of its name.
"""

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from tapegrad_check import emulator, rcnn, relu, simplex, tape, transformer
from tapegrad_check.folder import AGAIN, CONFIG, MODEL, Arrays, CheckError, Unchecked, read_folder

__all__ = ["CheckError", "CheckReport", "Unchecked", "check", "read_folder"]

Checker = Callable[[dict[str, Any], Arrays, dict[str, Any]], list[str]]
"""From config, arrays and claims to what was re-derived, in sentences."""

CHECKERS: dict[str, Checker] = {
    "relu": relu.check,
    "transformer": transformer.check,
    "simplex": simplex.check,
    "tape": tape.check,
    "emulator": emulator.check,
    "rcnn": rcnn.check,
    "extended": tape.check_extended,
}


@dataclass(frozen=True)
class CheckReport:
    """What was re-derived from the files of a saved net."""

    folder: str
    target: str
    statements: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON."""
        return asdict(self)

    def __str__(self) -> str:
        article = "an" if self.target[0] in "aeio" else "a"
        first = f"{self.folder}: {article} {self.target} network whose certificate holds"
        return "\n".join([first, *(f"  - {statement}" for statement in self.statements)])


def check(path: str | os.PathLike[str]) -> CheckReport:
    """Re-derives every claim of the certificate from the arrays; `CheckError` says what does not hold."""
    folder = read_folder(path)
    target = folder.config["target"]
    if target not in CHECKERS:
        raise Unchecked(
            f"there is no checker for the target {target!r}",
            where=f"{path}/{CONFIG}",
            advice=f"Checked targets are {', '.join(CHECKERS)}.",
        )
    try:
        statements = CHECKERS[target](folder.config["net"], folder.arrays, folder.certificate["claims"])
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise CheckError(
            f"the net lacks something that its target needs: {type(error).__name__} {error}",
            where=str(path),
            advice=AGAIN,
        ) from error
    sums = f"{MODEL} and {CONFIG} have the sums that the certificate was issued for"
    earlier = ["the folder is of format 1, which does not record how its source was lowered"]
    return CheckReport(
        str(path), target, (sums, *statements, *(earlier if folder.config["version"] == 1 else ()))
    )
