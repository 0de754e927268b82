"""`tapegrad search` and `tapegrad restarts` as a user types them."""

import json

import pytest
from typer.testing import CliRunner

from tapegrad.cli import app
from tapegrad.errors import InputError, Refused


def tapegrad(*words):
    found = CliRunner().invoke(app, words, catch_exceptions=True)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found


def test_tasks_are_listed():
    assert "parity-of-all" in tapegrad("search").stdout
    assert "single-coordinate" in json.loads(tapegrad("restarts", "--json").stdout)


def test_search_prints_the_machine_and_what_was_verified():
    found = tapegrad("search", "any-minus", "--states", "1")
    assert found.exit_code == 0
    assert "reads +" in found.stdout
    assert "32 of 32 test points agree" in found.stdout


def test_search_with_writing_machines_random_candidates_and_a_file(tmp_path):
    words = [
        "search",
        "any-minus",
        "--states",
        "1",
        "--writes",
        "--samples",
        "20000",
        "-k",
        "1",
        "--no-train",
    ]
    first, second = (
        json.loads(tapegrad(*words, "--file", str(tmp_path / "f"), "--json").stdout) for _ in "ab"
    )
    assert first["family"]["writes"] is True
    assert first["error"] == 0
    assert second["resumed"] > first["resumed"] == 0
    assert second["table"] == first["table"]
    with pytest.raises(InputError, match="another search: exponent is 1 there, 2 here"):
        tapegrad(*words, "-k", "2", "--file", str(tmp_path / "f"))


def test_restarts_keep_the_promise_of_corollary_2():
    words = ["restarts", "any-minus", "--states", "1", "--count", "300", "--seed", "3", "--json"]
    found = json.loads(tapegrad(*words).stdout)
    assert found["asked_restarts"] > 300
    assert "nothing is promised" in found["meaning"]
    assert found["error"] <= 0.5
    assert 0 < found["answering"] < 300


def test_raw_restarts_state_their_chance():
    found = json.loads(tapegrad("restarts", "any-minus", "--raw", "--count", "2", "--json").stdout)
    assert found["log10_chance"] < -10_000
    assert 0 <= found["error"] <= 1
    assert "10^-" in found["meaning"]


def test_hopeless_requests_say_so():
    with pytest.raises(Refused, match="restarts, each a network"):
        tapegrad("restarts", "any-minus", "--states", "3")
    with pytest.raises(InputError, match="no task"):
        tapegrad("restarts", "peace")
    with pytest.raises(InputError, match="accuracy must lie between 0 and 1"):
        tapegrad("restarts", "any-minus", "--accuracy", "2")
