"""A sign of life: what takes long says so, now and then, on standard error."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

FIRST, THEN = 5.0, 30.0
"""Seconds until something is said, and between one time and the next."""


@contextmanager
def alive(says: Callable[[], str]) -> Iterator[None]:
    """Says it for as long as what is inside goes on."""
    ended = threading.Event()

    def speak() -> None:
        wait = FIRST
        while not ended.wait(wait):
            wait = THEN
            print(says(), file=sys.stderr, flush=True)

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield
    finally:
        ended.set()
        speaker.join()
