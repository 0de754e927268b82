"""`tapegrad show` with a target, and on a saved net."""

import json

from typer.testing import CliRunner

import tapegrad as tg
from tapegrad._sources import find
from tapegrad.cli import app

runner = CliRunner()


def call(*arguments: str):
    return runner.invoke(app, ["show", *arguments])


def test_a_source_on_a_target(tmp_path):
    page = tmp_path / "page.html"
    result = call("busy-beaver-2x2", "--target", "tape", "-s", "cells=16", "-o", str(page), "--json")
    assert result.exit_code == 0
    said = json.loads(result.output)
    assert (said["steps"], said["halted"], said["verified"]) == (7, True, True)
    assert page.stat().st_size == said["bytes"]


def test_a_saved_net(tmp_path):
    folder, page = tmp_path / "net", tmp_path / "page.html"
    tg.save(tg.compile(find("busy-beaver-2x2").source, "tape", cells=16), folder)
    assert call(str(folder), "-o", str(page)).exit_code == 0
    assert "busy beaver 2x2 on tape" in page.read_text()


def test_without_a_target_it_is_text_as_ever():
    assert "busy beaver 2x2" in call("busy-beaver-2x2").output


def test_what_is_missing_is_said(tmp_path):
    assert isinstance(call("increment", "-o", str(tmp_path / "page.html")).exception, tg.TapegradError)
    assert not list(tmp_path.iterdir())
