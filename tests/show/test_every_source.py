"""Every kind of source on every target has a drawing, or there is no such net, and the refusal says why."""

from typing import Any

import pytest

import tapegrad as tg
from tapegrad._sources import Found, all_kinds, find, kind_of
from tapegrad.errors import TapegradError
from tapegrad.show import recorder
from tapegrad.show.page import page
from tapegrad.show.recorder import compiled_example, compiled_source, record
from tapegrad.targets import all_targets
from tests.show.test_drawings import check, drawing


def sources() -> dict[str, Any]:
    """A small one of each kind."""

    def larger(a: tg.UInt(2), b: tg.UInt(2)):  # pyright: ignore[reportInvalidTypeForm]
        return tg.where(a > b, a, b)

    grid, _ = compiled_example("rcnn")
    return {
        "turing machine": find("increment"),
        "grid machine": Found(grid.source, ""),
        "circuit": find("parity8"),
        "function": Found(tg.trace(larger), ""),
        "sequential circuit": find("counter8"),
        "learner": find("learn-dictator8"),
        "program": find("subleq-hello"),
        "rasp program": find("rasp-length"),
    }


NO_SUCH_NETWORK = {
    ("sequential circuit", "simplex"): "does not halt within",
    ("learner", "simplex"): "does not halt within",
    ("learner", "rcnn"): "the filter would have",
    ("program", "simplex"): "does not halt within",
    ("program", "rcnn"): "with one head it would have",
}
"""What is refused, and what the refusal says."""


def test_there_is_a_source_of_every_kind():
    written_by_nobody = {"layered circuit"}  # what circuits become on their way
    assert {*sources(), *written_by_nobody} == {kind.name for kind in all_kinds()}
    for name, found in sources().items():
        assert kind_of(found.source).name == name


@pytest.mark.slow
@pytest.mark.parametrize("target", [t.name for t in all_targets()])
@pytest.mark.parametrize("kind", sources())
def test_every_source_on_every_target_has_a_drawing(kind, target):
    """Unless there is no such network: then the reason is given, and no page."""
    if (kind, target) in NO_SUCH_NETWORK:
        with pytest.raises(TapegradError, match=NO_SUCH_NETWORK[kind, target]):
            compiled_source(sources()[kind], target, None, {}, 12)
        return
    compiled, inputs = compiled_source(sources()[kind], target, None, {}, 12)
    recording = record(compiled, *inputs, steps=12, seconds=60)
    assert recording.agreed
    assert not recording.undrawn
    panel, frames = drawing(recording)
    check(panel, frames)
    assert len({frame["caption"] for frame in frames}) > 1
    assert len(page(recording)) < 1_000_000 + 2 * recorder.MOST_DATA
