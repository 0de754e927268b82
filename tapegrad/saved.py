"""Saving a compiled net as a folder that opens elsewhere, and loading it again.

`config.json` holds sizes, names, options and the source; `model.safetensors` every array;
`certificate.json` the claims, and the sums of the other two files.
"""

import os

import tapegrad_check
from tapegrad.compile import Compiled, prepare
from tapegrad.errors import BrokenNet
from tapegrad.files import EXTENDED, read_net, what_is_broken, write_net
from tapegrad.sources import source_from_json, source_to_json
from tapegrad.targets import target_named
from tapegrad_check import CheckReport

_SOURCE = "source."
"""Prefix of the arrays that belong to the source rather than to the net."""


def save(compiled: Compiled, path: str | os.PathLike[str]) -> None:
    """Writes the net's folder, whole or not at all."""
    source, source_arrays = source_to_json(compiled.source)
    arrays = compiled.net.arrays() | {_SOURCE + name: a for name, a in source_arrays.items()}
    config = {
        "target": compiled.target.name,
        "options": compiled.options,
        "passes": [rewriting.name for rewriting in compiled.passes],
        "net": compiled.net.config(),
        "source": source,
    }
    write_net(path, config, arrays, compiled.net.certificate())


def load(path: str | os.PathLike[str]) -> Compiled:
    """The compiled net again. The net itself comes from its arrays alone; the passes, which translate the
    user's inputs and states, are derived from the saved source."""
    folder = read_net(path)
    config = folder.config
    if config["target"] == EXTENDED:
        raise BrokenNet(
            "the folder holds a trained extended network, not a compiled net",
            where=str(path),
            advice="Load it with tapegrad.targets.extended.load.",
        )
    own = {name: a for name, a in folder.arrays.items() if not name.startswith(_SOURCE)}
    theirs = {name.removeprefix(_SOURCE): a for name, a in folder.arrays.items() if name.startswith(_SOURCE)}
    source = source_from_json(config["source"], theirs)
    with what_is_broken(path):
        target = target_named(config["target"])
        net = target.net.from_saved(config["net"], own)
        passes = prepare(source, target.name, config["options"])
    return Compiled(net, target, source, passes, config["options"])


def check(path: str | os.PathLike[str]) -> CheckReport:
    """Re-derives every claim of the certificate from the arrays, without the compiler (`tapegrad_check`);
    `BrokenNet` says what does not hold."""
    with what_is_broken(path):
        return tapegrad_check.check(path)
