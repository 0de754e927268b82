"""The targets, each a module of its own, found by the name that the user types."""

from difflib import get_close_matches
from importlib import import_module

from tapegrad.errors import Refused
from tapegrad.targets.target import Carry, Counts, Estimate, Example, Option, Target

_MODULES = {
    "relu": "tapegrad.targets.relu",
    "transformer": "tapegrad.targets.transformer",
    "decoder": "tapegrad.targets.decoder",
    "simplex": "tapegrad.targets.simplex",
    "tape": "tapegrad.targets.tape",
    "emulator": "tapegrad.targets.emulator",
    "rcnn": "tapegrad.targets.rcnn",
}
"""One line for each target; the module defines `TARGET`. Imported on first use, and JAX with it, so
that the command line starts quickly."""


def check_target(name: str | None) -> None:
    """Refuses a name that is no target's, and none at all, without importing one."""
    if name is None:
        listed = ", ".join(_MODULES)
        raise Refused("there is no target", advice=f"Choose one of {listed}, as in --target tape.")
    if name not in _MODULES:
        near = get_close_matches(name, _MODULES, 1)
        raise Refused(
            f"there is no target {name!r}",
            advice=(f"Did you mean {near[0]!r}? " if near else "") + f"Choose one of {', '.join(_MODULES)}.",
        )


def target_named(name: str) -> Target:
    """The target of this name."""
    check_target(name)
    return import_module(_MODULES[name]).TARGET


def target_names() -> tuple[str, ...]:
    """What targets are called, without importing one."""
    return tuple(_MODULES)


def all_targets() -> list[Target]:
    """Every target, in the order of the list above."""
    return [target_named(name) for name in _MODULES]


__all__ = [
    "Carry",
    "Counts",
    "Estimate",
    "Example",
    "Option",
    "Target",
    "all_targets",
    "check_target",
    "target_named",
    "target_names",
]
