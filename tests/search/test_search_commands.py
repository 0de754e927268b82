"""`tapegrad search` and `tapegrad restarts` as a user types them."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from tapegrad.cli import app
from tapegrad.errors import InputError, Refused
from tapegrad.search.confirm import confirm


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
    assert "machines of 1 state" in found.stdout


@pytest.mark.slow
def test_a_network_that_disagrees_with_its_machine_is_an_error(monkeypatch):
    def wrong(result):
        return replace(confirm(result), agreed=31)

    monkeypatch.setattr("tapegrad.search.confirm.confirm", wrong)
    assert tapegrad("search", "any-minus", "--states", "1").exit_code == 1
    assert tapegrad("search", "any-minus", "--states", "1", "--json").exit_code == 1


def test_states_are_counted_in_all():
    found = json.loads(
        tapegrad("search", "single-coordinate", "--states", "4", "--no-train", "--json").stdout
    )
    assert found["family"] == {"single": 2, "pairs": 1, "mirrored": True, "writes": False}
    with pytest.raises(InputError, match="2 states cannot hold 1 pairs"):
        tapegrad("search", "single-coordinate", "--states", "2")


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


@pytest.mark.slow
def test_restarts_keep_the_promise_of_corollary_2():
    words = ["restarts", "any-minus", "--states", "1", "--count", "300", "--seed", "3", "--json"]
    found = json.loads(tapegrad(*words).stdout)
    assert found["asked_restarts"] > 300
    assert "nothing is promised" in found["meaning"]
    assert found["error"] <= 0.5
    assert 0 < found["answering"] < 300


@pytest.mark.slow
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
    for failure in ("0", "-1", "nan"):
        with pytest.raises(InputError, match="failure must lie between 0 and 1"):
            tapegrad("restarts", "any-minus", "--failure", failure)
    with pytest.raises(Refused, match="examples to choose by"):
        tapegrad("restarts", "any-minus", "--accuracy", "1e-9")
    with pytest.raises(InputError, match="belong to no machine"):
        tapegrad("restarts", "any-minus", "--raw", "--writes")
    assert tapegrad("search", "any-minus", "--seed", "-1").exit_code == 2
