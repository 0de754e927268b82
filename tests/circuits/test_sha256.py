"""The compression of SHA-256, traced and plain, against hashlib."""

import hashlib
import random

import pytest

from examples.sha256 import compress, digest
from tapegrad.circuits import Array, UInt, trace

MESSAGES = [b"", b"abc", random.Random(1).randbytes(55), random.Random(2).randbytes(64 + 7)]
ONE_AND_TWO_BLOCKS = pytest.mark.parametrize("message", MESSAGES[2:], ids=["one block", "two blocks"])


@pytest.fixture(scope="module")
def traced():
    return trace(compress, Array(UInt(32), 8), Array(UInt(32), 16), name="sha256")


@pytest.mark.parametrize("message", MESSAGES, ids=len)
def test_the_plain_function(message):
    assert digest(message) == hashlib.sha256(message).digest()


@ONE_AND_TWO_BLOCKS
def test_the_circuit(traced, message):
    assert digest(message, traced) == hashlib.sha256(message).digest()


@ONE_AND_TWO_BLOCKS
def test_the_function_on_values_of_fixed_width(traced, message):
    assert digest(message, traced.plain) == hashlib.sha256(message).digest()
