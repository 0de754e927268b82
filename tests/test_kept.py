"""Compiled code is kept where only its user can write, found again, and never in the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tapegrad import _kept
from tapegrad._kept import FOLDER, SHORTEST, keep_compiled, kept_in

COMPILE = """
from tapegrad._kept import keep_compiled
keep_compiled()
import jax
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
seen = []
jax.monitoring.register_event_listener(lambda event, **_: seen.append(event))
print(float(jax.jit(lambda x: (x * x + 1).sum())(jax.numpy.arange(5.0))))
print("/jax/compilation_cache/cache_hits" in seen)
"""


@pytest.fixture
def caches(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    for name in (FOLDER, SHORTEST):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "tapegrad" / "xla"


def test_the_folder_is_the_users_own(caches, monkeypatch):
    keep_compiled()
    assert kept_in() == caches
    assert caches.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv(FOLDER, "elsewhere")
    keep_compiled()
    assert kept_in() == Path("elsewhere")


@pytest.mark.skipif(os.name != "posix", reason="rights as POSIX has them")
def test_a_folder_that_others_can_write_to_is_not_used(caches):
    caches.mkdir(parents=True)
    caches.chmod(0o770)
    keep_compiled()
    assert kept_in() is None
    caches.chmod(0o700)
    keep_compiled()
    assert kept_in() == caches


def test_without_a_place_nothing_is_kept(caches):
    caches.parent.write_text("in the way")
    keep_compiled()
    assert kept_in() is None


def test_empty_files_and_a_folder_that_is_full_are_tidied(caches, monkeypatch):
    caches.mkdir(parents=True, mode=0o700)
    for name, size in (("a", 0), ("b", 6), ("c", 4)):
        (caches / name).write_bytes(b"x" * size)
    monkeypatch.setattr(_kept, "LARGEST_FOLDER", 10)
    keep_compiled()
    assert sorted(path.name for path in caches.iterdir()) == ["b", "c"]
    monkeypatch.delenv(FOLDER)
    monkeypatch.setattr(_kept, "LARGEST_FOLDER", 9)
    keep_compiled()
    assert not list(caches.iterdir())


def test_code_is_found_again_and_damaged_files_do_no_harm(caches):
    def said() -> str:
        done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, check=True)
        assert not done.stderr
        return done.stdout

    assert said() == "35.0\nFalse\n"
    assert said() == "35.0\nTrue\n"
    for path in caches.iterdir():
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert said() == "35.0\nFalse\n"
