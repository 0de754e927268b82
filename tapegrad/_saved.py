"""Saving a compiled net as a folder that opens elsewhere, and loading it again.

`config.json` holds sizes, names, options and the source; `network.json` the graph of the network;
`model.safetensors` every array; `certificate.json` the claims, and the sums of the other files.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

import tapegrad_check
from tapegrad._compile import Compiled, check_compiled, defaults, prepare
from tapegrad._files import EXTENDED, read_net, what_is_broken, write_net
from tapegrad._sources import as_source, source_from_json, source_to_json
from tapegrad._witness import compare, digest, sum_of, witnesses
from tapegrad.circuits.layered import LayeredCircuit
from tapegrad.errors import BrokenNet
from tapegrad.networks.saving import from_json, to_json
from tapegrad.source import Arrays, Rewriting, Source
from tapegrad.targets import target_named
from tapegrad_check import CheckReport
from tapegrad_check.folder import DISGUISED, LOWERED, OF_NETWORK, PASS, SOURCE, Folder


def save(compiled: Compiled, path: str | os.PathLike[str]) -> None:
    """Writes the net's folder, whole or not at all: the net, its source, every option with its value, and a
    witness of each pass."""
    check_compiled(compiled, "save", ', "my.net"')
    source, source_arrays = source_to_json(compiled.source)
    config = {
        "target": compiled.target.name,
        "options": compiled.options,
        "defaults": defaults(compiled.source, compiled.target, compiled.options),
        "passes": witnesses(compiled.passes),
        "net": compiled.net.config(),
        "source": source,
    }
    arrays = compiled.net.all_arrays() | _with(SOURCE, source_arrays)
    position = _position_of_lowered(compiled.passes)
    if position is not None:
        config["lowered"], lowered_arrays = source_to_json(compiled.passes[position].after)
        arrays |= _with(LOWERED, lowered_arrays)
        for number, rewriting in enumerate(compiled.passes[: position + 1]):
            arrays |= _for_the_checker(rewriting, number, config["passes"][number], number < position)
    network = to_json(compiled.net.network) if compiled.net.saves_network else None
    write_net(path, config, arrays, compiled.net.certificate(), network)


def load(path: str | os.PathLike[str], *, proved: bool = False) -> Compiled:
    """The compiled net again. The net itself comes from its arrays alone; the passes, which translate the
    user's inputs and states, are derived from the saved source, and a net for which they would be others than
    they were is refused. With `proved`, so is one that is not proved to compute its source for all inputs;
    the bytes that are checked are those that are loaded."""
    from tapegrad_check.passes import bound_source  # with all that proves; who saves does without

    folder = read_net(path)
    if proved:
        _require_proof(folder, path)
    config, arrays = folder.config, folder.arrays
    if config["target"] == EXTENDED:
        raise BrokenNet(
            "the folder holds a trained extended network, not a compiled net",
            where=str(path),
            advice="Load it with tapegrad.targets.extended.load.",
        )
    if config["target"] == DISGUISED:
        raise BrokenNet(
            "the folder holds a net in disguise, which runs under another name",
            where=str(path),
            advice="Load it with tapegrad.interop.disguised.load_disguised.",
        )
    with what_is_broken(path):
        # What the passes would build is bounded by the options that the file names; what the checker builds,
        # by the size of the file. So it looks first.
        bound_source(folder, proves=False)
        source = source_from_json(config["source"], _without(SOURCE, arrays))
        target = target_named(config["target"])
        network = None
        if folder.network is not None:
            network = from_json(folder.network, folder.part(OF_NETWORK))
        net = target.loaded(config["net"], folder.own, network)
        loaded = Compiled(net, target, source, (), config["options"])
        return replace(loaded, passes=_passes(loaded, config, arrays))


def _require_proof(folder: Folder, path: str | os.PathLike[str]) -> None:
    with what_is_broken(path):
        report = tapegrad_check.check_folder(folder, path)
    if report.code:
        raise BrokenNet(
            f"the net is not proved in full: it {report.verdict}",
            where=str(path),
            advice="Load it without `proved`, if that is enough.",
        )


def check(
    path: str | os.PathLike[str],
    of: str | os.PathLike[str] | None = None,
    *,
    source: Source | None = None,
) -> CheckReport:
    """Re-derives every claim of the certificate from the arrays, without the compiler (`tapegrad_check`);
    `BrokenNet` says what does not hold. With `of`, a saved net, the path is that of a stock checkpoint that
    was exported from it, and compared with it. With `source`, the source in the folder must be this one, but
    for its name."""
    with what_is_broken(path):
        report = tapegrad_check.check(path, of)
        if source is not None:
            report.require_source(sum_of(as_source(source)))
        return report


def _passes(loaded: Compiled, config: Mapping[str, Any], arrays: Arrays) -> tuple[Rewriting, ...]:
    """Derived with the options and defaults that held when the net was compiled; each must give what it gave
    then."""
    passes = prepare(loaded.source, loaded.target.name, loaded.options, config.get("defaults"))
    saved = config.get("passes", [])  # a classifier has none
    compare(saved, passes, config["tapegrad"])
    position = _position_of_lowered(passes)
    lowered = digest(config["lowered"], _without(LOWERED, arrays)) if "lowered" in config else None
    if lowered != (None if position is None else saved[position]["sha256"]):
        raise BrokenNet("the lowered source is not the one that its pass gave")
    return passes


def _position_of_lowered(passes: tuple[Rewriting, ...]) -> int | None:
    """Which pass gave the source that is saved beside the user's: the last one, layers of a circuit aside,
    for those are the net's own arrays `gates.*`."""
    found = [i for i, rewriting in enumerate(passes) if not isinstance(rewriting.after, LayeredCircuit)]
    return found[-1] if found else None


def _for_the_checker(rewriting: Rewriting, number: int, entry: dict[str, Any], between: bool) -> Arrays:
    """Adds to the entry of a pass what the checker needs to prove it, and gives the arrays that belong there:
    what it gave, where other passes follow, and the relation that it left behind."""
    arrays: Arrays = {}
    if between:
        entry["after"], after_arrays = source_to_json(rewriting.after)
        arrays |= _with(f"{PASS}{number}.after.", after_arrays)
    if rewriting.relation is not None:
        entry["relation"], relation_arrays = rewriting.relation()
        arrays |= _with(f"{PASS}{number}.relation.", relation_arrays)
    return arrays


def _with(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    return {prefix + name: array for name, array in arrays.items()}


def _without(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
