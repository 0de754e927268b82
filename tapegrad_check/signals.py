"""Ctrl-C and SIGTERM: exceptions in the main thread, wherever it is, which are never lost.

A signal becomes an exception at the next line of Python, and Python drops an exception that nobody could
catch: in a destructor, a callback of ctypes, or one of the garbage collector. JAX has such a callback, and
whatever arrives during a collection would be dropped in it. `sys.unraisablehook` hears of every one that is;
if it was ours, the signal is sent again a little later, until it is raised where it counts.

A shell starts what runs in the background of a script with SIGINT ignored, and Python then leaves it so. It
is heard here nevertheless: who sends it, or presses Ctrl-C before the script, wants all of it to stop.
"""

import _thread
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

LATER = 0.01
"""Seconds until a signal that was lost is sent again."""


class Terminated(BaseException):
    """The system has asked the program to stop. It is no error, so no `except Exception` holds it up."""


SIGNALS = {KeyboardInterrupt: signal.SIGINT, Terminated: signal.SIGTERM}


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """SIGINT raises `KeyboardInterrupt` and SIGTERM `Terminated`, until the end of the block; what was set
    before is set again. Outside the main thread signals are not ours to handle, and nothing is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[signal.Signals, Any] = {signal.SIGTERM: signal.signal(signal.SIGTERM, _terminate)}
    if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, signal.SIG_DFL):
        before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    hook, resending = sys.unraisablehook, _Resending()

    def heard(dropped: "UnraisableHookArgs") -> None:
        number = SIGNALS.get(dropped.exc_type)
        if number is None:
            hook(dropped)
        else:
            resending.soon(number)

    sys.unraisablehook = heard
    try:
        yield
    finally:
        resending.wanted = False
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


class _Resending:
    """Sends a signal to the main thread again, as long as it is wanted."""

    def __init__(self) -> None:
        self.wanted, self.under_way = True, False

    def soon(self, number: signal.Signals) -> None:
        if not self.under_way:
            self.under_way = True
            _thread.start_new_thread(self._send, (number,))  # takes no lock, for this may be anywhere

    def _send(self, number: signal.Signals) -> None:
        time.sleep(LATER)
        self.under_way = False
        if self.wanted:
            signal.pthread_kill(threading.main_thread().ident or 0, number)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated
