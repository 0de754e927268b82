"""The boundary of the checker's command, function by function."""

import io
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tapegrad_check import signals
from tapegrad_check.boundary import (
    INTERNAL_ERROR,
    INTERRUPTED,
    TERMINATED,
    TRACEBACK,
    complain,
    guarded,
    print_json,
    printable,
    silent_when_closed,
)
from tapegrad_check.folder import CheckError
from tapegrad_check.signals import Terminated

Capture = pytest.CaptureFixture[str]


def test_codes() -> None:
    assert (INTERNAL_ERROR, INTERRUPTED, TERMINATED) == (70, 130, 143)


def raises(error: BaseException) -> int:
    raise error


def leaves_because_of(error: Exception) -> int:
    try:
        raise error
    except Exception:
        sys.exit(9)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (SystemExit(5), 5, ""),
        (SystemExit(None), 0, ""),
        (SystemExit("words"), 70, ""),
        (BrokenPipeError(), 0, ""),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (Terminated(), 143, "terminated\n"),
    ],
)
def test_every_end_has_its_code(error: BaseException, code: int, said: str, capsys: Capture) -> None:
    assert guarded(lambda: raises(error)) == code
    assert capsys.readouterr() == ("", said)


def test_a_program_gives_its_own_code_and_may_leave_by_another(capsys: Capture) -> None:
    assert guarded(lambda: 3) == 3
    assert guarded(lambda: leaves_because_of(BrokenPipeError())) == 0
    assert guarded(lambda: leaves_because_of(ValueError())) == 9
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("as_json", [False, True])
def test_an_unforeseen_error(as_json: bool, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TRACEBACK, raising=False)
    assert guarded(lambda: raises(ZeroDivisionError("by\n nothing.")), as_json=as_json) == 70
    out, err = capsys.readouterr()
    what = "internal error: ZeroDivisionError: by nothing."
    assert err.startswith(f"{what} Please report it;")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    if as_json:
        assert json.loads(out).keys() == {"error", "where", "advice"}
        assert (json.loads(out)["error"], json.loads(out)["where"]) == (what, "")
    else:
        assert out == ""


@pytest.mark.parametrize(("asked", "shown"), [("", False), ("0", False), ("1", True)])
def test_tracebacks_are_shown_to_who_asks(
    asked: str, shown: bool, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TRACEBACK, asked)
    guarded(lambda: raises(ValueError()))
    out, err = capsys.readouterr()
    assert ("Traceback" in err) == shown
    assert out == ""


def test_signals_are_handled_while_the_program_runs_and_given_back(capsys: Capture) -> None:
    before = signal.getsignal(signal.SIGTERM)

    def stopped() -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        return 0

    assert guarded(stopped) == TERMINATED
    assert signal.getsignal(signal.SIGTERM) is before
    assert capsys.readouterr().err == "terminated\n"


class Raises:
    """Sends a signal while it is taken apart, where Python drops whatever is raised."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)


class Slow:
    def __del__(self) -> None:
        time.sleep(0.1)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)])
@pytest.mark.parametrize("ignored", [False, True])
def test_a_signal_that_comes_where_exceptions_are_dropped_is_heard(
    number: signal.Signals, code: int, ignored: bool, capsys: Capture
) -> None:
    """As in the callback that JAX has in the garbage collector; and though a shell has it ignored."""
    before, hook = signal.getsignal(number), sys.unraisablehook
    if ignored:
        signal.signal(number, signal.SIG_IGN)

    def waits() -> int:
        Raises(number)
        for _ in range(3):  # it comes again while these are taken apart, and is dropped again
            Slow()
        for _ in range(200):
            time.sleep(0.1)
        return 0

    try:
        assert guarded(waits) == code
        assert signal.getsignal(number) == (signal.SIG_IGN if ignored else before)
    finally:
        signal.signal(number, before)
    assert sys.unraisablehook is hook
    assert capsys.readouterr().err == ("interrupted\n" if code == INTERRUPTED else "terminated\n")


def test_other_exceptions_that_are_dropped_are_told_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: told.append(dropped.exc_type))

    class Broken:
        def __del__(self) -> None:
            raise OSError

    assert guarded(lambda: len([Broken()]) - 1) == 0
    assert told == [OSError]


def test_a_signal_of_another_program_is_left_to_it(capsys: Capture) -> None:
    """One that handles Ctrl-C itself, and has called ours."""
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        assert guarded(lambda: signal.raise_signal(signal.SIGINT) or 4) == 4
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]


def test_signals_are_the_main_threads(capsys: Capture) -> None:
    before, found = signal.getsignal(signal.SIGTERM), []
    thread = threading.Thread(
        target=lambda: found.append((guarded(lambda: 6), signal.getsignal(signal.SIGTERM)))
    )
    thread.start()
    thread.join()
    assert found == [(6, before)]


def test_what_steers_a_terminal_is_written_as_its_escape() -> None:
    assert printable("plain é") == "plain é"
    assert printable("a\x1b[1m\tb\n") == "a\\x1b[1m\\tb\\n"
    assert printable("a\tb\n\x07", keep="\n\t") == "a\tb\n\\x07"


ERROR = CheckError("something", where="there", advice="Do it\x1b again.")


def test_an_error_is_a_paragraph_and_to_scripts_also_json(capsys: Capture) -> None:
    complain(ERROR)
    assert capsys.readouterr() == ("", "error: something (there). Do it\\x1b again.\n")
    complain(ERROR, as_json=True)
    out, err = capsys.readouterr()
    assert json.loads(out) == {"error": "something", "where": "there", "advice": "Do it\x1b again."}
    assert err.startswith("error: ")


@pytest.mark.parametrize(
    ("terminal", "plain", "coloured"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_colours_are_for_terminals(
    terminal: bool, plain: bool, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = io.StringIO()
    monkeypatch.setattr(said, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if plain:
        monkeypatch.setenv("NO_COLOR", "")
    complain(ERROR)
    assert said.getvalue().startswith("\x1b[1;31merror: \x1b[0m" if coloured else "error: ")
    said.seek(0)
    said.truncate()
    guarded(lambda: raises(KeyboardInterrupt()))
    assert said.getvalue() == "interrupted\n"


@pytest.mark.parametrize(
    ("encoding", "text", "written"),
    [("utf-8", "é", "é"), ("ascii", "é", "\\u00e9"), ("utf-8", "\x9b", "\\u009b"), (None, "é", "\\u00e9")],
)
def test_json_in_ascii_where_that_is_needed(
    encoding: str | None, text: str, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stream(io.StringIO):
        @property
        def encoding(self) -> str | None:  # type: ignore[override]
            return encoding

    out = Stream()
    monkeypatch.setattr(sys, "stdout", out)
    print_json([text])
    assert out.getvalue() == f'[\n  "{written}"\n]\n'


def test_who_stops_reading_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        with silent_when_closed():
            print("lost", flush=True)
        print("lost as well", flush=True)  # to nowhere, by now

    def prints() -> int:
        print("lost")
        return 4

    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert guarded(prints) == 4


def test_closed_streams_go_nowhere_and_encodings_escape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with open(tmp_path / "out", "w", encoding="ascii") as out:
        monkeypatch.setattr(sys, "stdout", out)

        def prints() -> int:
            print("é")
            print("nobody hears", file=sys.stderr)
            return 0

        assert guarded(prints) == 0
    assert (tmp_path / "out").read_text() == "\\xe9\n"
    monkeypatch.setattr(sys, "stdout", None)
    assert guarded(lambda: print("nobody reads") or 2) == 2


def test_a_signal_that_was_lost_is_sent_again_once_and_only_while_it_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[Any] = []
    sent: list[Any] = []
    monkeypatch.setattr(signals._thread, "start_new_thread", lambda send, given: begun.append((send, given)))
    monkeypatch.setattr(signals.signal, "pthread_kill", lambda *given: sent.append(given))
    monkeypatch.setattr(signals, "LATER", 0)
    resending = signals._Resending()
    for _ in range(3):
        resending.soon(signal.SIGTERM)
    (send, given), *others = begun
    assert not others
    send(*given)
    assert sent == [(threading.main_thread().ident, signal.SIGTERM)]
    resending.soon(signal.SIGINT)
    assert len(begun) == 2
    resending.wanted = False
    begun[1][0](*begun[1][1])
    assert len(sent) == 1


def test_nothing_is_sent_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[signals._Resending] = []
    own = signals._Resending
    monkeypatch.setattr(signals, "_Resending", lambda: made.append(own()) or made[-1])
    with signals.stopped_by_signals():
        assert made[0].wanted
    assert not made[0].wanted
