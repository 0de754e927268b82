"""A run as an animated GIF: as many frames as the run has, each a picture of its own, and a refusal that
names the extra where what draws is not installed."""

import io
import sys
from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

import tapegrad as tg
from tapegrad._sources import find, read
from tapegrad.cli import app
from tapegrad.show import animation
from tapegrad.show.animation import ACCENT, ON, gif
from tapegrad.show.recorder import record
from tapegrad.show.views import VIEWS


def frames(content: bytes) -> list[np.ndarray]:
    image_of = pytest.importorskip("PIL.Image")
    with image_of.open(io.BytesIO(content)) as image:
        found = []
        for number in range(image.n_frames):
            image.seek(number)
            found.append(np.asarray(image.convert("RGB")).astype(int))
    return found


def near(image: np.ndarray, colour: tuple[int, int, int]) -> int:
    """Pixels of nearly this colour."""
    return int((np.abs(image - colour).sum(axis=2) < 24).sum())


def test_every_step_is_a_picture_in_its_colours():
    bits = np.array([[3 >> i & 1 for i in range(2)] + [1, 0]])
    recording = record(tg.compile(read("adder2"), "relu", form="practical"), bits)
    found = frames(gif(recording))
    assert len(found) == len(recording.frames)
    assert all(image.shape == (animation.HEIGHT, animation.WIDTH, 3) for image in found)
    assert all(near(image, ON) > 100 for image in found)
    assert near(found[1], ACCENT) > 30
    assert all((a != b).any() for a, b in pairwise(found))


def test_a_long_run_is_thinned(monkeypatch):
    monkeypatch.setattr(animation, "MOST_FRAMES", 5)
    recording = record(tg.compile(find("busy-beaver-3x2").source, "tape", cells=32))
    assert len(frames(gif(recording))) in (5, 6)


def test_without_pillow_the_extra_is_named(monkeypatch):
    recording = record(tg.compile(find("busy-beaver-2x2").source, "tape", cells=16))
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(tg.TapegradError, match=r"tapegrad\[plot\]"):
        gif(recording)


def test_a_net_without_a_drawing_is_refused(monkeypatch):
    monkeypatch.delitem(VIEWS, ("tape", ""))
    recording = record(tg.compile(find("busy-beaver-2x2").source, "tape", cells=16))
    with pytest.raises(tg.TapegradError, match="no drawing"):
        gif(recording)


def test_the_command_writes_it(tmp_path):
    path = tmp_path / "run.gif"
    result = CliRunner().invoke(app, ["show", "busy-beaver-2x2", "-t", "tape", "-o", str(path)])
    assert result.exit_code == 0
    assert "put it on a slide" in result.output
    assert path.read_bytes()[:6] == b"GIF89a"
