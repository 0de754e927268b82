"""Runs a command that can read files in given places only: `python -I confined.py PLACE ... -- /PATH ...`.

The kernel sees to it (Landlock, of Linux since 5.19), for the command and all that it starts. Where there is
no Landlock the command runs as it would. A script, which imports nothing of this package.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Iterable

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""System calls, of the same numbers on every architecture."""
READ_FILE, MOVE_BETWEEN_FOLDERS = 1 << 2, 1 << 13
"""Without being named, the second is refused everywhere, and compilers move what they have made."""
GIVE_VERSION, PATH_BENEATH, NO_NEW_PRIVILEGES = 1, 1, 38


def _call(number: int, *values: object) -> int:
    return ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *values)


def can_confine() -> bool:
    """Whether the kernel has Landlock, of a version that lets files be moved."""
    version = (None, ctypes.c_size_t(0), ctypes.c_uint(GIVE_VERSION))
    return sys.platform == "linux" and _call(CREATE_RULESET, *version) >= 2


def confine(places: Iterable[str]) -> None:
    """Closes all files outside these places to this process, for reading."""
    rights = READ_FILE | MOVE_BETWEEN_FOLDERS
    handled = ctypes.create_string_buffer(struct.pack("=Q", rights), 8)
    ruleset = ctypes.c_int(_call(CREATE_RULESET, handled, ctypes.c_size_t(8), ctypes.c_uint(0)))
    for place in filter(os.path.exists, places):
        opened = os.open(place, os.O_PATH | os.O_CLOEXEC)
        own = rights if os.path.isdir(place) else READ_FILE
        beneath = ctypes.create_string_buffer(struct.pack("=Qi", own, opened), 12)
        _done(_call(ADD_RULE, ruleset, ctypes.c_int(PATH_BENEATH), beneath, ctypes.c_uint(0)))
        os.close(opened)
    _done(ctypes.CDLL(None, use_errno=True).prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _done(_call(RESTRICT_SELF, ruleset, ctypes.c_uint(0)))


def _done(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), "the files of other programs cannot be closed to this one")


if __name__ == "__main__":
    end = sys.argv.index("--")
    if can_confine():
        confine(sys.argv[1:end])
    os.execv(sys.argv[end + 1], sys.argv[end + 1 :])
