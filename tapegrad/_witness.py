"""Witnesses of passes: what each of them made of a source when a net was compiled, as a digest.

A saved net holds its own weights, but the passes, which translate the user's inputs and states, are derived
again from the source when it is loaded. If a pass or the default of an option has changed since then, they
would translate for another net. So the digest of what each pass gave is saved and compared.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._sources import source_to_json
from tapegrad.errors import BrokenNet
from tapegrad.source import Rewriting, Source


def witnesses(passes: Iterable[Rewriting]) -> list[dict[str, Any]]:
    """Name and digest of each pass, as plain JSON."""
    return [{"name": rewriting.name, "sha256": sum_of(rewriting.after)} for rewriting in passes]


def sum_of(source: Source) -> str:
    """The `digest` of a source."""
    return digest(*source_to_json(source))


def digest(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """The sha256 of a source in its JSON form. Its name and the order of its rules, which do not change what
    it does, are left out; everything else counts."""
    content = {key: value for key, value in data.items() if key != "name"}
    if "rules" in content:
        content["rules"] = sorted(content["rules"], key=json.dumps)
    total = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        total.update(json.dumps([name, plain.dtype.str, list(plain.shape)]).encode())
        total.update(plain.tobytes())
    return total.hexdigest()


def compare(saved: Sequence[Mapping[str, Any]], passes: Sequence[Rewriting], version: str) -> None:
    """Refuses a net whose passes were others when it was saved, by that version of the package."""
    own = witnesses(passes)
    if [one["name"] for one in own] != [one["name"] for one in saved]:
        ways = [" -> ".join(one["name"] for one in way) or "none" for way in (saved, own)]
        raise _outdated(f"its passes ({ways[0]}) are not those of this version ({ways[1]})", version)
    for then, now, rewriting in zip(saved, own, passes, strict=True):
        same = then["sha256"] == now["sha256"]
        if same and "relation" in then and rewriting.relation is not None:  # older nets have none
            relation, _ = rewriting.relation()
            same = then["relation"] == json.loads(json.dumps(relation))
        if not same:
            raise _outdated(f"the pass {then['name']!r} of this version gives another result", version)


def _outdated(reason: str, version: str) -> BrokenNet:
    return BrokenNet(
        f"the net was saved by version {version} of tapegrad, and {reason}",
        advice="Compile and save it again.",
    )
