"""A run as a video: sizes and times as a reader of its own finds them in the file, pictures as a browser
plays them, and refusals that leave nothing behind."""

import base64
import importlib.util
import io
import shutil
import struct
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from typer.testing import CliRunner

import tapegrad as tg
from tapegrad.cli import app
from tapegrad.show import video as videos
from tapegrad.show.animation import A_SECOND, LAST, painter_of
from tapegrad.show.recorder import record
from tapegrad.show.video import RATE, SIZE, SMOOTH, video
from tests.show.chrome import Chrome, installed

encodes = pytest.mark.skipif(
    shutil.which("ffmpeg") is None and importlib.util.find_spec("imageio_ffmpeg") is None,
    reason="there is no ffmpeg",
)


@pytest.fixture(scope="module")
def recording():
    return record(tg.compile("busy-beaver-2x2", "tape", cells=16))


def boxes(content: bytes) -> Iterator[tuple[str, bytes]]:
    """The boxes of an MP4 file (ISO 14496-12), one after the other."""
    at = 0
    while at + 8 <= len(content):
        size, name = struct.unpack_from(">I4s", content, at)
        yield name.decode("latin-1"), content[at + 8 : at + size]
        at += size


def box(content: bytes, *path: str) -> bytes:
    for name in path:
        content = next(inside for own, inside in boxes(content) if own == name)
    return content


@encodes
def test_an_mp4_has_every_step_and_begins_with_its_index(recording):
    content = video(recording, ".mp4")
    names = [name for name, _ in boxes(content)]
    assert names[0] == "ftyp"
    assert names.index("moov") < names.index("mdat")  # it can be played while it loads
    header = box(content, "moov", "mvhd")
    scale, length = struct.unpack_from(">II", header, 12)
    pictures = len(recording.frames) - 1 + LAST * A_SECOND
    assert length / scale == pytest.approx(pictures / A_SECOND, abs=2 / RATE)
    entry = box(content, "moov", "trak", "mdia", "minf", "stbl", "stsd")[8:]
    assert entry[4:8] == b"avc1"
    assert struct.unpack_from(">HH", entry, 32) == (1440, 900)


@encodes
@pytest.mark.slow
def test_a_webm_is_one(recording):
    content = video(recording, ".webm")
    assert content[:4] == bytes.fromhex("1a45dfa3")  # EBML
    assert b"webm" in content[:64]
    assert b"V_VP9" in content[:1000]


@encodes
@pytest.mark.slow
@pytest.mark.skipif(installed() is None, reason="there is no Chromium")
@pytest.mark.parametrize("kind", [".mp4", ".webm"])
def test_a_browser_plays_the_pictures_that_were_painted(recording, kind, tmp_path):
    image_of = pytest.importorskip("PIL.Image")
    (tmp_path / f"run{kind}").write_bytes(video(recording, kind))
    page = tmp_path / "page.html"
    page.write_text(f'<body style="margin:0"><video src="run{kind}" muted preload="auto"></video>')
    painter, numbers = painter_of(recording, SMOOTH, SIZE)
    with Chrome() as browser:
        browser.call(
            "Emulation.setDeviceMetricsOverride", width=1440, height=900, deviceScaleFactor=1, mobile=False
        )
        browser.open(page.as_uri())
        browser.value("globalThis.film = document.querySelector('video'), 0")
        browser.wait("film.readyState >= 2")
        for number in (1, 4, numbers[-1]):
            browser.value(f"film.currentTime = {(number + 0.5) / A_SECOND}")
            browser.wait("!film.seeking && film.readyState >= 2")
            browser.wait(
                "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))) && true"
            )
            data = browser.call("Page.captureScreenshot", format="png")["data"]
            with image_of.open(io.BytesIO(base64.b64decode(data))) as image:
                seen = np.asarray(image.convert("RGB")).astype(float)
            apart = [np.abs(seen - np.asarray(painter.frame(n)).astype(float)).mean() for n in numbers]
            assert int(np.argmin(apart)) == number
            assert apart[number] < 4


def test_without_ffmpeg_the_extra_is_named_before_anything_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(videos.shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    monkeypatch.setattr("tapegrad.show.recorder.record", None)
    path = tmp_path / "run.mp4"
    result = CliRunner().invoke(app, ["show", "busy-beaver-2x2", "-t", "tape", "-o", str(path)])
    assert isinstance(result.exception, tg.TapegradError)
    assert "tapegrad[video]" in str(result.exception)
    assert not list(tmp_path.iterdir())


def test_what_ffmpeg_complains_about_is_said_and_nothing_is_written(monkeypatch, recording, tmp_path):
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\necho Unknown encoder >&2\nexit 8\n")
    program.chmod(0o755)
    monkeypatch.setattr(videos, "encoder", lambda: str(program))
    with pytest.raises(tg.TapegradError, match="could not make the video: Unknown encoder"):
        video(recording, ".mp4")


@encodes
@pytest.mark.slow
@pytest.mark.parametrize("kind", [".mp4", ".WEBM"])
def test_the_command_writes_it(tmp_path, kind):
    path = tmp_path / f"run{kind}"
    result = CliRunner().invoke(app, ["show", "busy-beaver-2x2", "-t", "tape", "-o", str(path)])
    assert result.exit_code == 0
    assert "put it on a slide" in result.output
    assert path.stat().st_size > 5_000
    assert [found.name for found in tmp_path.iterdir()] == [path.name]
