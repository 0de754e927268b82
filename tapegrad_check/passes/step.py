"""One pass of a saved net: its name, its options, and what the folder holds of it."""

from dataclasses import dataclass, field
from typing import Any

from tapegrad_check.fields import text
from tapegrad_check.folder import Arrays, Folder, NotProved, require
from tapegrad_check.sources import Model, lowered_of, model_of

IN_THE_NET = ("layers", "identity layers")
"""What these passes give is the net's own arrays, and the checker of the target proves it."""


@dataclass(frozen=True)
class Step:
    """The pass with this number."""

    folder: Folder
    number: int
    name: str
    statements: list[str] = field(default_factory=list)
    """What was proved of it, in sentences; the pass adds them."""
    tested: list[int] = field(default_factory=list)
    """Where it was not proved for all inputs, on how many it was tested."""
    proves: bool = True
    """Otherwise a pass may leave out long proofs, once it is known that what it stands for is in bounds."""

    @property
    def _entry(self) -> dict[str, Any]:
        return self.folder.config["passes"][self.number]

    @property
    def sha256(self) -> str:
        """The sum of what it gave."""
        return text(self._entry.get("sha256"), "the sum of a pass")

    def option(self, name: str, *, default: Any = ...) -> Any:
        """The value that an option of this lowering had: as given, else the default of that time."""
        stages = self.folder.defaults
        found = self._chosen(name, stages[self.number] if self.number < len(stages) - 1 else {}, default)
        require(found is not ..., f"the option {name!r} of the pass {self.name!r} is missing")
        return found

    def target_option(self, name: str, default: Any = None) -> Any:
        """The value that an option of the target had, for one of its own passes; the default given here where
        the folder does not say."""
        stages = self.folder.defaults
        return self._chosen(name, stages[-1] if stages else {}, default)

    def _chosen(self, name: str, defaults: dict[str, Any], default: Any) -> Any:
        options = self.folder.config["options"]
        return options[name] if name in options else defaults.get(name, default)

    @property
    def relation(self) -> dict[str, Any] | None:
        """What the compiler wrote down to make the pass easy to check, and which is only a hint."""
        return self._entry.get("relation")

    @property
    def relation_arrays(self) -> Arrays:
        """Arrays that belong to the relation."""
        return self.folder.part(f"pass.{self.number}.relation.")

    def saved(self) -> Model:
        """What the folder says came out; nothing about it is proved."""
        from_here = [
            n for n, name in enumerate(self.folder.pass_names) if n > self.number and name not in IN_THE_NET
        ]
        if not from_here and "lowered" in self.folder.config:
            return lowered_of(self.folder)
        if "after" not in self._entry:
            raise NotProved(f"the folder does not hold what the pass {self.name!r} gave")
        return model_of(self._entry["after"], self.folder.part(f"pass.{self.number}.after."))
