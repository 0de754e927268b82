"""Ready machines: counting, adding, multiplying, recognising, copying, busy beavers, a universal machine."""

from tapegrad.machines.library.ready import READY, ReadyMachine, ready

__all__ = ["READY", "ReadyMachine", "ready"]
