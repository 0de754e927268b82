"""The boundary of the command line: every end has its own exit code, and no source, name, stream or setting
of the user's makes it crash."""

import errno
import fcntl
import importlib.abc
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import jax
import numpy as np
import pytest
from numpy._core._exceptions import _ArrayMemoryError as ArrayMemoryError

import tapegrad as tg
import tapegrad_command
from tapegrad import cli
from tapegrad._files import write_atomically, write_folder
from tapegrad._sources import find, parse_inputs
from tapegrad.commands import listing, nets
from tapegrad.commands.output import SafeConsole
from tapegrad.errors import FormatError, InputError
from tapegrad.targets import target_named
from tapegrad_check import __main__ as checker
from tapegrad_check.boundary import printable

Command = Callable[..., int]
Capture = pytest.CaptureFixture[str]

YAML = """
name: {name}
input: '01'
blank: ' '
start state: {state}
table:
  {state}:
    0: R
    1: R
"""


@pytest.fixture
def tapegrad(monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line, in this process; gives the exit code."""
    monkeypatch.delenv("TAPEGRAD_TRACEBACK", raising=False)

    def run(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["tapegrad", *words])
        with pytest.raises(SystemExit) as left:
            cli.main()
        assert isinstance(left.value.code, int)
        return left.value.code

    return run


def fails_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """`tapegrad show` comes upon this error."""

    def find(text: str) -> None:
        raise error

    monkeypatch.setattr(listing, "find", find)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("the roof fell in"),
        KeyError("roof"),
        EOFError("a cache was cut off"),
        OSError(errno.EIO, "Input/output error"),
        RecursionError("too deep"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_unforeseen_error_is_a_paragraph_with_a_code_of_its_own(
    tapegrad: Command, monkeypatch: pytest.MonkeyPatch, capsys: Capture, error: Exception
) -> None:
    fails_with(monkeypatch, error)
    assert tapegrad("show", "adder2") == 70
    said = capsys.readouterr()
    assert said.err.startswith(f"internal error: {type(error).__name__}")
    assert "TAPEGRAD_TRACEBACK=1" in said.err
    assert len(said.err.splitlines()) == 1
    assert tapegrad("show", "adder2", "--json") == 70
    assert set(json.loads(capsys.readouterr().out)) == {"error", "where", "advice"}
    monkeypatch.setenv("TAPEGRAD_TRACEBACK", "0")  # so that what the option sets is undone
    assert tapegrad("--traceback", "show", "adder2") == 70
    assert "Traceback (most recent call last)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), ""),
        (ArrayMemoryError((1 << 40, 8), np.dtype(np.int8)),
         ": Unable to allocate 8.00 TiB for an array with shape (1099511627776, 8) and data type int8"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), ": [Errno 12] Cannot allocate memory"),
        (jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.\nby XLA"),
         ": Out of memory allocating 9 bytes. by XLA"),
    ],
)  # fmt: skip
def test_a_shortage_of_memory_is_no_fault_of_ours(
    tapegrad: Command, monkeypatch: pytest.MonkeyPatch, capsys: Capture, error: Exception, told: str
) -> None:
    fails_with(monkeypatch, error)
    assert tapegrad("show", "adder2") == 71
    said = capsys.readouterr().err
    assert said.startswith(f"not enough memory in tapegrad.commands.listing{told}. Try something smaller")
    assert len(said.splitlines()) == 1
    assert "internal" not in said
    assert tapegrad("show", "adder2", "--json") == 71
    assert json.loads(capsys.readouterr().out)["error"].endswith(f"listing{told}")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
@pytest.mark.parametrize("words", ["show adder2", "show adder2 --json", "show no-such-source --json"])
def test_a_full_disk_is_no_fault_of_ours(
    words: str, tapegrad: Command, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """There may be no room for an error in JSON either."""
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert tapegrad(*words.split()) == 71
        monkeypatch.undo()
        with suppress(OSError):  # what is left in it
            full.close()
    told = "what is written has no room: No space left on device. Make room on the disk"
    assert capfd.readouterr().err.startswith(told)


@pytest.mark.parametrize(
    "command",
    [
        "compile adder8 -t relu -o out",
        "export adder8 --to blif -o out",
        "show increment -t transformer -i 1 -o out.html",
        "campaign circuit -t relu -c 2 --workers 1 -o out",
        "zoo -c 1 --workers 1 -o out",
    ],
)
def test_no_room_for_a_file_has_a_code_of_its_own(
    command: str, tapegrad: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """A limit on the size of files is to a program what a full disk is."""
    monkeypatch.chdir(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        assert tapegrad(*command.split()) == 71
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert capsys.readouterr().err.startswith("what is written has no room: ")
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]


def test_other_errors_of_jax_are_ours(tapegrad: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_with(monkeypatch, jax.errors.JaxRuntimeError("INTERNAL: not RESOURCE_EXHAUSTED"))
    assert tapegrad("show", "adder2") == 70


@pytest.mark.slow
def test_a_network_that_does_not_fit_into_memory() -> None:
    """Two tapes of four million cells, which are trained, in a process that has 2 GiB."""
    words = "run", "palindrome", "abba", "-t", "tape", "--set", "cells=4194304"
    ended = subprocess.run(
        [sys.executable, "-c", "import tapegrad_command; tapegrad_command.main()", *words],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (9 << 28, 9 << 28)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 71
    assert ended.stderr.startswith("not enough memory")
    assert "Try something smaller" in ended.stderr


def test_the_codes_are_in_the_help(tapegrad: Command, capsys: Capture) -> None:
    assert tapegrad("--help") == 0
    assert "70 internal error, 71 no memory or disk space left" in " ".join(capsys.readouterr().out.split())
    assert "70 internal error" in (Path(__file__).parent.parent / "README.md").read_text()


def test_bad_input_is_told_without_class_names(tapegrad: Command, capsys: Capture) -> None:
    assert tapegrad("show", "nonsense") == 2
    assert capsys.readouterr().err.startswith("error: 'nonsense' is neither")


def test_a_folder_is_no_source(tapegrad: Command, capsys: Capture, tmp_path: Path) -> None:
    assert tapegrad("show", str(tmp_path)) == 2
    assert capsys.readouterr().err.startswith(f"error: '{tmp_path}' is a folder. Give a file;")
    assert tapegrad("show", str(tmp_path / "nowhere")) == 2
    assert "there is no file" in capsys.readouterr().err


def test_ctrl_c_and_sigterm_are_a_word_and_the_codes_of_shells(
    tapegrad: Command, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    fails_with(monkeypatch, KeyboardInterrupt())
    assert tapegrad("show", "adder2") == 130
    assert capsys.readouterr().err == "interrupted\n"
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(listing, "find", lambda text: signal.raise_signal(signal.SIGTERM))
    assert tapegrad("show", "adder2") == 143
    assert capsys.readouterr().err == "terminated\n"
    assert signal.getsignal(signal.SIGTERM) == before


def test_ctrl_c_while_the_program_is_loaded(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    class Impatient(importlib.abc.MetaPathFinder):
        def find_spec(self, fullname, path, target=None):
            if fullname == "tapegrad.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "tapegrad.cli")
    monkeypatch.setattr(sys, "meta_path", [Impatient(), *sys.meta_path])
    with pytest.raises(SystemExit) as left:
        tapegrad_command.main()
    assert left.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize(("code", "at_once"), [(130, True), (143, True), (0, False), (1, False), (70, False)])
def test_a_stopped_program_ends_before_python_takes_itself_apart(
    code: int, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JAX may crash there, with signal 11 for an exit code; what is registered for the end is done before."""
    done: list[object] = []
    monkeypatch.setattr("tapegrad.cli.main", lambda: sys.exit(code))
    monkeypatch.setattr("atexit._run_exitfuncs", lambda: done.append("registered"))
    monkeypatch.setattr(os, "_exit", done.append)
    with pytest.raises(SystemExit) as left:
        tapegrad_command.main()
    assert left.value.code == code
    assert done == (["registered", code] if at_once else [])


def test_ctrl_c_is_heard_though_a_shell_has_set_it_to_be_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    monkeypatch.setattr("tapegrad.cli.main", lambda: signal.raise_signal(signal.SIGINT))
    try:
        with pytest.raises(KeyboardInterrupt):
            tapegrad_command.main()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_program_that_is_stopped_leaves_no_half_written_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(number: int) -> None:
        raise KeyboardInterrupt

    (tmp_path / "page").write_text("as it was")
    with monkeypatch.context() as stopped:
        stopped.setattr(os, "fsync", stop)
        with pytest.raises(KeyboardInterrupt):
            write_atomically(tmp_path / "page", b"new")
        with pytest.raises(KeyboardInterrupt):
            write_folder(tmp_path / "folder", {"a": b"new"})
    assert [path.name for path in tmp_path.iterdir()] == ["page"]
    assert (tmp_path / "page").read_text() == "as it was"
    write_atomically(tmp_path / "page", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["page"]


WRITER = """
import sys
from tapegrad._files import write_folder
print("ready", flush=True)
while True:
    for letter in b"xy":
        write_folder(sys.argv[1], {name: bytes([letter]) * (1 << 16) for name in "abc"})
"""


def test_a_folder_is_whole_under_its_name_whenever_its_writer_is_killed(tmp_path: Path) -> None:
    """Files of one letter each: a mixture, a missing file or a missing folder would show. The next writer
    removes what the killed one has left behind."""
    folder = tmp_path / "net"
    write_folder(folder, dict.fromkeys("abc", b"x" * (1 << 16)))
    for attempt in range(4):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, folder], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        time.sleep(0.01 * attempt)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        assert len({(folder / name).read_bytes() for name in "abc"}) == 1
    for left in tmp_path.iterdir():
        os.utime(left, (0, 0))
    held = tmp_path / ".net.unfinished-held"
    held.mkdir()
    handle = os.open(held, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    os.utime(held, (0, 0))
    write_folder(folder, dict.fromkeys("abc", b"x"))
    assert {path.name for path in tmp_path.iterdir()} == {"net", held.name}
    os.close(handle)
    write_folder(folder, dict.fromkeys("abc", b"x"))
    assert [path.name for path in tmp_path.iterdir()] == ["net"]


def test_whoever_stops_reading_gets_no_complaint() -> None:
    """Also with standard output closed from the start, and in an encoding that lacks what is printed."""
    command = f"{sys.executable} -m tapegrad.cli"
    ascii_only = "LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0"
    script = f"""
    {command} targets | (exec <&-; sleep 0); echo ${{PIPESTATUS[0]}}
    {command} targets >&-; echo $?
    {ascii_only} {command} show "$SOURCE" | grep 'caf.xe9' >/dev/null; echo ${{PIPESTATUS[@]}}
    """
    source = YAML.format(name="café", state="σ")
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env=os.environ | {"SOURCE": source}
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["0", "0", "0", "0"]


def test_the_verdict_outlives_the_reader(
    tapegrad: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A net that disagrees is told by its exit code, also if nobody reads the report."""
    assert tapegrad("compile", "adder2", "-t", "relu", "-o", str(tmp_path / "net")) == 0
    report = tg.verify(tg.load(tmp_path / "net"))
    wrong = type(report)(**{**vars(report), "agreed": False})
    monkeypatch.setattr(nets, "verify_net", lambda *inputs, **options: wrong)
    monkeypatch.setattr(nets, "console", SafeConsole())  # it falls silent for good
    for words in (["--json"], []):
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "w") as closed, monkeypatch.context() as shown:
            shown.setattr(sys, "stdout", closed)
            assert tapegrad("verify", str(tmp_path / "net"), *words) == 1


@pytest.mark.parametrize("length", [256, 4095])
def test_a_source_in_one_line_may_be_longer_than_a_file_name(
    tapegrad: Command, tmp_path: Path, length: int
) -> None:
    states = [f"{i:03}" for i in range(length // 18 + 1)]
    rows = ", ".join(f"q{s}: {{0: R, 1: L}}" for s in states)
    source = f"{{blank: ' ', start state: q000, table: {{{rows}}}}}".ljust(length)
    assert len(source) >= length
    assert tapegrad("show", source) == 0
    assert tapegrad("export", source, "--to", "yaml", "-o", str(tmp_path / "out")) in (0, 2)
    assert tapegrad("show", source, "-t", "tape", "-o", str(tmp_path / "page")) != 70
    assert tapegrad("check", "x" * length) == 2
    assert tapegrad("compile", "adder2", "-t", "relu", "-o", str(tmp_path / ("x" * length))) == 2
    assert checker.main(["x" * length]) == 2


@pytest.mark.parametrize("name", ["[/x]", "[bold]", ":smile:", "a[/bold]\\"])
def test_names_are_not_markup(tapegrad: Command, tmp_path: Path, capsys: Capture, name: str) -> None:
    path = tmp_path / f"{name.replace('/', '')}.yaml"
    path.write_text(YAML.format(name=json.dumps(name), state=json.dumps(name)))
    net = str(tmp_path / "[bold]net")
    for words in (
        ["show", str(path)],
        ["compile", str(path), "-t", "transformer", "-s", "steps=3", "-o", net],
        ["run", str(path), "-t", "transformer", "-s", "steps=3", "--engine", "fast"],
        ["verify", net, "--engine", "fast", "-i", "01"],
        ["check", net],
    ):
        assert tapegrad(*words) == 0, words
        said = capsys.readouterr().out
        assert (net if words[0] == "check" else name) in said.replace("\n", "")


def test_names_do_not_steer_the_terminal(tapegrad: Command, tmp_path: Path, capsys: Capture) -> None:
    name = "\x1b]0;owned\x07\x9b2J\u202e"
    path = tmp_path / f"{name}.yaml"
    path.write_text(YAML.format(name=json.dumps(name), state=json.dumps(name)))
    for words, code in (
        (["show", str(path)], 0),
        (["show", str(path), "--json"], 0),
        (["run", str(path), "-t", "transformer", "-s", "steps=3", "--engine", "fast", "-i", name], 2),
        (["check", str(path)], 2),
    ):
        assert tapegrad(*words) == code
        said = capsys.readouterr()
        assert printable(said.out + said.err, keep="\n") == said.out + said.err
    assert checker.main([str(path)]) == 2
    said = capsys.readouterr().err
    assert printable(said, keep="\n") == said
    assert printable("a\nb\x1b é 😀\ud800", keep="\n") == "a\nb\\x1b é 😀\\ud800"


def test_what_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "machine").write_text("1RB1LB_1LA1RZ")

    def refuse(*given: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    for place in ("os.stat", "builtins.open"):
        with monkeypatch.context() as refusing:
            refusing.setattr(place, refuse)
            with pytest.raises(InputError, match="cannot be read: Permission denied"):
                find(str(tmp_path / "machine"))


def test_only_regular_files_are_read_and_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    learner = find("learn-parity8").source
    found: list[str] = []

    def ask() -> None:
        for name in (str(tmp_path / "fifo"), "/dev/zero"):
            with pytest.raises(InputError, match="is not a regular file"):
                find(name)
            with pytest.raises(InputError, match="is not a regular file"):
                write_atomically(name, b"content")
            with pytest.raises(InputError, match="is not a regular file"):
                parse_inputs(learner, [name])
            found.append(name)

    asking = threading.Thread(target=ask, daemon=True)  # should a read block, the test fails instead
    asking.start()
    asking.join(30)
    assert len(found) == 2
    assert (tmp_path / "fifo").is_fifo()


def test_texts_that_are_no_unicode_are_refused() -> None:
    for text in ("\ud800", "\udc80", "a\0b"):
        with pytest.raises(FormatError):
            find(text)


@pytest.mark.parametrize("name", ["transformer", "tape"])
def test_strict_settings_of_jax_are_the_users_own(name: str) -> None:
    example = target_named(name).examples()[0]
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        net = tg.compile(example.source, name, **example.options)
        assert tg.verify(net, [example.inputs], steps=5).agreed
        assert jax.config.values["jax_numpy_dtype_promotion"] == "strict"


@pytest.mark.parametrize(
    ("flags", "warned"), [("", False), ("--xla_cpu_enable_fast_math=true", True)], ids=["plain", "fast-math"]
)
def test_arithmetic_that_is_not_exact_is_noticed(flags: str, warned: bool) -> None:
    script = "import tapegrad as tg; tg.verify(tg.compile(tg.read('1RB1LB_1LA1RZ'), 'tape'))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=os.environ | {"XLA_FLAGS": flags}
    )
    assert ("InexactArithmetic" in done.stderr) == warned
    assert ("fast-math" in done.stderr) == warned
