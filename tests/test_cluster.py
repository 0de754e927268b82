"""Jobs on processes of their own."""

import os
import signal

from tapegrad._cluster import on_processes


def interrupted(job: int) -> int:
    """As if Ctrl-C had been pressed: a terminal sends it to the workers too."""
    os.kill(os.getpid(), signal.SIGINT)
    return job + 1


def test_workers_leave_ctrl_c_to_who_started_them() -> None:
    heard = signal.getsignal(signal.SIGINT)
    assert list(on_processes(interrupted, range(2), 1)) == [(0, 1), (1, 2)]
    assert signal.getsignal(signal.SIGINT) is heard
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
