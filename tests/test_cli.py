"""The command line as a user meets it: output, JSON, exit codes, and errors without tracebacks."""

import json
import os
import subprocess
import sys
import time
from contextlib import chdir, redirect_stderr, redirect_stdout
from importlib import metadata
from io import StringIO
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest.mock import patch

import pytest

from tapegrad import cli
from tapegrad._sources import parse_options
from tapegrad.commands import run as run_command
from tapegrad.commands.output import file_name
from tapegrad.errors import Refused
from tests.check.forging import Saved


def tapegrad(*words: str, cwd: Path | str = ".") -> CompletedProcess[str]:
    """The command line, in this process, where JAX is loaded already. As a process of its own it is met in
    `test_the_program_by_itself`."""
    out, err = StringIO(), StringIO()
    typed = patch.object(sys, "argv", ["tapegrad", *words])
    with typed, chdir(cwd), redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        cli.main()
    assert isinstance(left.value.code, int)
    return CompletedProcess(words, left.value.code, out.getvalue(), err.getvalue())


def test_the_program_by_itself() -> None:
    words = ["run", "adder2", "-t", "relu", "-i", "01"]
    command = [sys.executable, "-m", "tapegrad.cli", *words]
    alone = subprocess.run(command, capture_output=True, text=True, timeout=300)
    here = tapegrad(*words)
    assert alone.returncode == here.returncode == 2
    assert alone.stderr == here.stderr
    assert alone.stdout == here.stdout == ""


def test_the_program_starts_without_what_only_nets_need() -> None:
    heavy = {"jax", "equinox", "numba", "scipy", "sklearn", "matplotlib"}
    code = "import sys, tapegrad.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert "numpy" in done.stdout.split()
    assert not heavy & set(done.stdout.split())


def test_the_version_is_that_of_the_package() -> None:
    done = tapegrad("--version")
    assert done.returncode == 0
    assert done.stdout.split() == ["tapegrad", metadata.version("tapegrad")]


def test_run_prints_json_for_scripts() -> None:
    done = tapegrad(
        "run", "adder4", "--target", "relu", "-i", "a=3", "-i", "b=9", "--engine", "fast", "--json"
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["output"] == {"out": 12}
    assert result["verified"] is True
    assert result["passes"] == []
    assert result["chosen"] == {}
    for key in ("source", "target", "steps", "halted", "checked", "max_deviation", "weights", "seconds"):
        assert key in result


def test_compile_check_verify_in_a_row(tmp_path: Path) -> None:
    assert tapegrad("compile", "adder2", "-t", "relu", "-o", "net", cwd=tmp_path).returncode == 0
    checked = tapegrad("check", "net", cwd=tmp_path)
    assert checked.returncode == 0
    assert "computes this source, for all inputs" in checked.stdout
    verified = tapegrad("verify", "net", "--json", "--engine", "fast", cwd=tmp_path)
    assert json.loads(verified.stdout)["exhaustive"] is True
    model = tmp_path / "net" / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-1])
    refused = tapegrad("check", "net", cwd=tmp_path)
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr


OWN, TESTED = "computes its own table; source not checked", "tested on 1 input"


@pytest.mark.parametrize(
    ("kept", "change", "code", "said"),
    [
        ("v3/relu", {}, 0, "computes this source, for all inputs"),
        ("v3/relu-of-machine", {"lowered": None}, 1, "error: "),
        ("v3/relu", {"version": 1}, 2, "format 1 does not record how its source was lowered"),
        ("v3/relu-of-machine", {"passes": "magic"}, 4, OWN),
        ("v3/extended", {}, 5, TESTED),
    ],
)
def test_nothing_less_than_a_proof_has_the_code_0(
    kept: str, change: dict[str, Any], code: int, said: str, tmp_path: Path
) -> None:
    """`tapegrad check X && deploy` passed nets that were compared with their own table alone; and the same
    net had one code from `tapegrad check` and another from `tapegrad-check`."""
    saved = Saved.of(Path(__file__).parent / "saved_nets" / kept)
    if change == {"passes": "magic"}:
        saved.config["passes"][0]["name"] = "magic"
    else:
        saved.config |= change
    saved.write(tmp_path / "net")
    here = tapegrad("check", "net", cwd=tmp_path)
    alone = subprocess.run(
        [sys.executable, "-m", "tapegrad_check", "net"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert here.returncode == alone.returncode == code
    assert (here.stdout, here.stderr) == (alone.stdout, alone.stderr)
    assert said in here.stdout + here.stderr
    as_json = tapegrad("check", "net", "--json", cwd=tmp_path)
    assert as_json.returncode == code
    assert json.loads(as_json.stdout).get("verdict") == (said if code in (0, 4, 5) else None)


def test_both_commands_have_a_table_of_codes() -> None:
    alone = subprocess.run(
        [sys.executable, "-m", "tapegrad_check", "--help"], capture_output=True, text=True, check=False
    )
    for line in ("0    it computes this source", "4    it computes its own table", "5    it was tested"):
        assert line in alone.stdout
    here = " ".join(tapegrad("check", "--help").stdout.split())
    for said in ("0 proved that it computes this source", "4 it computes its own table", "5 it was tested"):
        assert said in here


def test_an_unfinished_run_has_its_own_exit_code() -> None:
    words = [
        "run",
        "busy-beaver-4x2",
        "-t",
        "transformer",
        "--set",
        "steps=107",
        "-n",
        "20",
        "--engine",
        "fast",
    ]
    done = tapegrad(*words)
    assert done.returncode == 3
    assert "step limit" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "nonsense", "-t", "relu"], "nor a text in a known format"),
        (["run", "nowhere/file.txt", "-t", "relu"], "no file"),
        (["run", "adder2", "-t", "perceptron"], "no target"),
        (["run", "adder2", "-t", "relu", "-i", "01"], "2 bits were given for the 4 inputs"),
        (["run", "adder2", "-t", "relu", "-i", "a=9", "-i", "b=0"], "does not fit"),
        (["run", "adder2", "-t", "relu", "-i", "a=1"], "no value for b"),
        (["run", "increment", "-t", "transformer", "-i", "10x"], "no symbol 'x'"),
        (["run", "increment", "-t", "transformer", "--set", "steps"], "name=value"),
        (["check", "nowhere"], "not a folder"),
        (["verify", "nowhere"], "not a folder"),
        (["show", "1RB1L"], ""),
    ],
)
def test_bad_input_is_a_paragraph_and_exit_code_2(words: list[str], said: str) -> None:
    done = tapegrad(*words)
    assert done.returncode == 2
    assert " ".join(said.split()) in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_errors_come_as_json_too() -> None:
    done = tapegrad("run", "adder2", "-t", "relu", "-i", "01", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"].startswith("2 bits")


@pytest.mark.parametrize(
    "command", ["run", "compile", "verify", "check", "targets", "formats", "show", "demo"]
)
def test_every_command_has_help(command: str) -> None:
    done = tapegrad(command, "--help")
    assert done.returncode == 0
    assert command in done.stdout


def test_listings_are_text_and_json() -> None:
    for command in ("targets", "formats"):
        assert tapegrad(command).stdout
        assert json.loads(tapegrad(command, "--json").stdout)
    assert "find last" in tapegrad("show", "palindrome").stdout
    assert json.loads(tapegrad("show", "adder2", "--json").stdout)["kind"] == "circuit"


def test_a_source_may_be_a_file_of_any_format(tmp_path: Path) -> None:
    (tmp_path / "half").write_text("aag 3 2 0 1 1\n2\n4\n6\n6 2 4\n")
    shown = tapegrad("show", "half", cwd=tmp_path)
    assert shown.returncode == 0
    assert "AND" in shown.stdout
    for words in (["compile", "half", "-t", "relu", "-o", "net"], ["check", "net"], ["verify", "net"]):
        done = tapegrad(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_settings_with_leading_zeros_stay_words() -> None:
    assert parse_options(["inputs=011", "steps=20", "first=0", "rate=0.5", "soft=true"]) == {
        "inputs": "011",
        "steps": 20,
        "first": 0,
        "rate": 0.5,
        "soft": True,
    }


@pytest.mark.parametrize("target", ["relu", "emulator"])
def test_steps_and_cells_are_chosen_for_the_run(target: str) -> None:
    for word, output in (("1011", "1100"), ("111", "1000")):
        found = json.loads(tapegrad("run", "increment", word, "--target", target, "--json").stdout)
        assert found["halted"]
        assert found["verified"] is True
        assert found["output"]["tapes"] == [output]
        assert found["chosen"]["cells"] == 2 * len(word) + 1  # the head goes one cell beyond the word


def test_a_long_run_goes_to_its_end_by_the_fast_engine() -> None:
    found = json.loads(tapegrad("run", "busy-beaver-2x4", "--target", "tape", "--json").stdout)
    assert (found["steps"], found["halted"], found["engine"]) == (3_932_964 + 1, True, "fast")
    assert found["checked"]["every"] > 1


def test_a_run_without_end_in_sight_stops() -> None:
    done = tapegrad("run", "1RA1LA_1RA1LA", "--target", "transformer", "--no-verify", "--json")
    assert done.returncode == 3


def test_a_folder_is_not_written_over_unasked(tmp_path: Path) -> None:
    words = ["compile", "adder2", "-t", "relu", "-o", "a.net"]
    assert tapegrad(*words, cwd=tmp_path).returncode == 0
    before = (tmp_path / "a.net" / "config.json").read_bytes()
    again = tapegrad(*words[:1], "adder4", *words[2:], cwd=tmp_path)
    assert again.returncode == 2
    assert "exists" in again.stderr
    assert (tmp_path / "a.net" / "config.json").read_bytes() == before
    assert tapegrad(*words[:1], "adder4", *words[2:], "--overwrite", cwd=tmp_path).returncode == 0
    assert (tmp_path / "a.net" / "config.json").read_bytes() != before


def test_a_name_of_the_library_is_no_folder(tmp_path: Path) -> None:
    """Whatever lies here by that name; the folder is ./NAME, and any other name is a folder's too."""
    assert tapegrad("compile", "adder2", "-t", "relu", "-o", "increment", cwd=tmp_path).returncode == 0
    ran = tapegrad("run", "increment", "1011", "-t", "transformer", "--json", cwd=tmp_path)
    assert json.loads(ran.stdout)["output"]["tapes"] == ["1100"]
    bare = tapegrad("run", "increment", cwd=tmp_path)
    assert bare.returncode == 2
    assert "is a ready source" in bare.stderr
    assert "write ./increment" in bare.stderr
    assert "3 states" in tapegrad("show", "increment", cwd=tmp_path).stdout
    exported = tapegrad("export", "increment", "--to", "elf", "-o", "x", cwd=tmp_path)
    assert "'increment'" in exported.stderr
    assert "adder2" not in exported.stderr
    (tmp_path / "increment").rename(tmp_path / "sum")
    for name in ("./sum", "sum"):
        ran = tapegrad("run", name, "1", "2", "--json", cwd=tmp_path)
        assert json.loads(ran.stdout)["source"] == "adder2"


@pytest.mark.parametrize("target", ["relu", "emulator"])
def test_sizes_are_found_by_running_the_machine(target: str, tmp_path: Path) -> None:
    done = tapegrad("compile", "increment", "-t", target, "-o", "i.net", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)["chosen"]) == {"steps", "cells"}
    said = json.loads(tapegrad("estimate", "increment", "-t", target, "--json").stdout)
    assert said["fixed"] + said["trainable"] > 0
    ran = tapegrad("run", "i.net", "--input", "1011", "--json", cwd=tmp_path)
    assert json.loads(ran.stdout)["output"]["tapes"] == ["1100"]


COUNT_DOWN = "_start: li t0, 150\nnext: addi t0, t0, -1\n bnez t0, next\n li a0, 7\n li a7, 93\n ecall\n"


@pytest.mark.parametrize(
    ("source", "target", "size"),
    [
        ("count.s", "decoder", "tokens"),  # 303 instructions of 144 tokens, and the usual horizon is 16,384
        ("1RB1LB_1LA0LC_1RZ1LD_1RD0RA", "tape", None),  # whose usual cells are enough
        ("busy-beaver-2x4", "tape", "cells"),
        ("busy-beaver-2x4", "transformer", "steps"),
    ],
)
def test_a_saved_net_has_room_for_the_run_of_its_source(
    source: str, target: str, size: str | None, tmp_path: Path
) -> None:
    (tmp_path / "count.s").write_text(COUNT_DOWN)
    made = tapegrad("compile", source, "-t", target, "-o", "s.net", "--json", cwd=tmp_path)
    assert set(json.loads(made.stdout)["chosen"]) == ({size} if size else set())
    ran = json.loads(tapegrad("run", "s.net", "--json", cwd=tmp_path).stdout)
    assert ran["halted"]
    assert ran["verified"]


def test_a_saved_net_of_a_source_without_an_end_has_the_usual_size(tmp_path: Path) -> None:
    made = tapegrad("compile", "1RA1RA_1RA1RA", "-t", "tape", "-o", "s.net", "--json", cwd=tmp_path)
    assert json.loads(made.stdout)["chosen"] == {}


def test_a_run_that_walks_away_is_refused_with_what_to_do() -> None:
    done = tapegrad("run", "1RA1RA_1RA1RA", "-t", "tape")
    assert done.returncode == 2
    assert "for 100,000 steps, in which it does not halt" in done.stderr
    assert "--steps 1000" in done.stderr
    done = tapegrad("run", "1RA1RA_1RA1RA", "-t", "tape", "--steps", "1000", "--json")
    assert (done.returncode, json.loads(done.stdout)["steps"]) == (3, 1000)


@pytest.mark.parametrize(("word", "ended"), [("00", "state halt\n"), ("001", "state 0 (no rule for '1')\n")])
def test_a_rule_that_is_missing_is_told(word: str, ended: str, tmp_path: Path) -> None:
    (tmp_path / "forgot.txt").write_text("0 0 1 r 0\n0 _ _ l halt\n")
    assert ended in tapegrad("run", "forgot.txt", "-t", "simplex", word, cwd=tmp_path).stdout


def test_pages_and_nets_have_names_of_their_own(tmp_path: Path) -> None:
    for _ in range(2):  # an earlier page is written over
        done = tapegrad("show", "1RB1LB_1LA1RZ", "-t", "simplex", cwd=tmp_path)
        assert "written to 1RB1LB_1LA1RZ-simplex.html" in done.stdout
    (tmp_path / "adder2-relu.html").write_text("<title>my work on relu</title> by hand"[15:])
    done = tapegrad("show", "adder2", "a=1", "b=1", "-t", "relu", cwd=tmp_path)
    assert done.returncode == 2
    assert "no page of a run" in done.stderr
    assert "by hand" in (tmp_path / "adder2-relu.html").read_text()
    assert "written to adder2.net" in tapegrad("compile", "adder2", "-t", "relu", cwd=tmp_path).stdout
    assert "exists" in tapegrad("compile", "adder2", "-t", "relu", cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("folder/flip.txt", "flip"),
        ("a/my.py:sum_of", "sum_of"),
        ("0 1 1 r 0\n0 _ 1 * halt", "0-1-1-r-0"),
        ("../..", "source"),
        ("x" * 999, "x" * 60),
        ("\0", "source"),
    ],
)
def test_names_of_files_are_safe(source: str, name: str) -> None:
    assert file_name(source) == name


def test_numbers_in_order_for_a_circuit() -> None:
    done = tapegrad("run", "adder8", "-t", "relu", "200", "100", "--json")
    assert json.loads(done.stdout)["output"] == {"out": 300}


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["ru"], {"run"}),
        (["run", "palin"], {"palindrome"}),
        (["run", "palindrome", "--target", "t"], {"transformer", "tape"}),
        (["show", "tests/test_cl"], {"tests/test_cli.py", "tests/test_cluster.py"}),
    ],
)
def test_the_shell_completes(typed: list[str], offered: set[str]) -> None:
    words = ["tapegrad", *typed]
    asked = {
        "_TAPEGRAD_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(typed)),
    }
    with patch.dict(os.environ, asked):
        done = tapegrad()
    assert done.returncode == 0
    assert set(done.stdout.split()) == offered


def test_values_follow_the_input_of_every_command(tmp_path: Path) -> None:
    """As in README: --input 200 100."""
    (tmp_path / "my.py").write_text(
        "import tapegrad as tg\ndef f(a: tg.UInt(2), b: tg.UInt(2)):\n    return a + b\n"
    )
    given = ("my.py:f", "-t", "relu", "--input", "2", "1")
    assert "result      3" in tapegrad("run", *given, cwd=tmp_path).stdout
    assert tapegrad("estimate", *given, cwd=tmp_path).returncode == 0
    assert tapegrad("compile", *given, "-o", "f.net", cwd=tmp_path).returncode == 0
    assert tapegrad("verify", "f.net", "--input", "2", "1", cwd=tmp_path).returncode == 0
    assert tapegrad("show", *given, "-o", "f.html", cwd=tmp_path).returncode == 0


def test_an_unknown_ending_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    done = tapegrad("show", "increment", "-t", "tape", "-o", "run.avi", cwd=tmp_path)
    assert done.returncode == 2
    assert "ends in .html, .gif, .mp4 or .webm" in done.stderr.replace("\n", " ")
    assert not list(tmp_path.iterdir())


def test_a_circuit_without_input_says_what_to_type() -> None:
    refused = " ".join(tapegrad("run", "adder2", "-t", "relu").stderr.split())
    typed = refused.rpartition("For this one: ")[2].rstrip(".").split()
    assert typed == ["--input", "a=3", "b=3"]
    assert "out=6" in tapegrad("run", "adder2", "-t", "relu", *typed).stdout


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("transformer", "1 of the network in"),
        ("decoder", "1 of the network in"),
        ("emulator", "1 of SGD, one for"),
    ],
)
def test_only_what_trains_is_called_training(target: str, told: str, tmp_path: Path) -> None:
    done = tapegrad("run", "adder2", "--target", target, "--input", "1011")
    assert told in done.stdout, done.stdout
    tapegrad("compile", "adder2", "--target", target, "-o", str(tmp_path / "net"))
    assert told in tapegrad("run", str(tmp_path / "net"), "--input", "1011").stdout


@pytest.mark.parametrize("target", ["transformer", "decoder"])
def test_a_run_that_no_net_has_room_for_is_refused_before_it_is_run(target: str) -> None:
    began = time.process_time()
    done = tapegrad("run", "busy-beaver-5x2", "--target", target)
    assert done.returncode == 2, done.stdout
    assert "takes 47,176,87" in done.stderr, done.stderr
    assert time.process_time() - began < 10, "it was run"


def test_a_circuit_runs_to_its_end_however_long_its_machine_takes() -> None:
    done = tapegrad("run", "interrupts9", "--target", "rcnn", "--input", "01" * 18)
    assert "stopped at the step limit" not in done.stdout
    assert "verified    agreed at every" in done.stdout, done.stdout


def test_a_run_that_would_take_hours_is_refused_once_its_pace_is_known(monkeypatch):
    """Half a step a second: 7,200 steps take two hours, 800 take less than half an hour."""
    now, heard = [0.0], []
    monkeypatch.setattr(run_command.time, "monotonic", lambda: now[0])
    for steps, refused in ((800, False), (7200, True)):
        told, now[0] = run_command.in_reason(heard.append, steps), 0.0
        for taken in range(3):
            now[0] = 100.0 + 2 * taken  # what is compiled before the first step does not count
            told(taken)
        now[0] += 2
        if refused:
            with pytest.raises(Refused, match=r"7,200 steps of this run take 4\.0 hours"):
                told(3)
        else:
            told(3)
    assert heard == [0, 1, 2, 3] * 2
