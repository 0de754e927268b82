"""SHA-256's compression function as plain Python, and its circuit.

The function below imports nothing and runs on ordinary integers; traced, it is a circuit of 768 inputs.

    python examples/sha256.py "any text"
"""

import sys

WORD = 0xFFFFFFFF


def _primes(count: int) -> list[int]:
    found: list[int] = []
    candidate = 2
    while len(found) < count:
        if all(candidate % p for p in found):
            found.append(candidate)
        candidate += 1
    return found


def _root_fraction(n: int, power: int) -> int:
    """The first 32 bits after the point of the root of n, by bisection in integers (FIPS 180-4, 4.2.2)."""
    low, high = 0, n << 32
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**power <= n << 32 * power else (low, middle)
    return low & WORD


ROUND_CONSTANTS = [_root_fraction(p, 3) for p in _primes(64)]
FIRST_STATE = [_root_fraction(p, 2) for p in _primes(8)]


def rotated(x, by):
    """The word turned right by a number of bits."""
    return (x >> by | x << 32 - by) & WORD


def compress(state, block):
    """The state (8 words of 32 bits) after one block (16 words)."""
    schedule = list(block)
    for t in range(16, 64):
        x, y = schedule[t - 15], schedule[t - 2]
        s0 = rotated(x, 7) ^ rotated(x, 18) ^ x >> 3
        s1 = rotated(y, 17) ^ rotated(y, 19) ^ y >> 10
        schedule.append((schedule[t - 16] + s0 + schedule[t - 7] + s1) & WORD)
    a, b, c, d, e, f, g, h = state
    for t in range(64):
        s1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)
        choice = g ^ e & (f ^ g)
        first = (h + s1 + choice + ROUND_CONSTANTS[t] + schedule[t]) & WORD
        s0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)
        majority = a & b | c & (a | b)
        second = (s0 + majority) & WORD
        a, b, c, d, e, f, g, h = (first + second) & WORD, a, b, c, (d + first) & WORD, e, f, g
    return [(old + new) & WORD for old, new in zip(state, (a, b, c, d, e, f, g, h), strict=True)]


def blocks(message: bytes) -> list[list[int]]:
    """The message padded and cut into blocks of 16 words (FIPS 180-4, 5.1.1)."""
    padded = message + b"\x80" + bytes((55 - len(message)) % 64) + (8 * len(message)).to_bytes(8, "big")
    numbers = [int.from_bytes(padded[i : i + 4], "big") for i in range(0, len(padded), 4)]
    return [numbers[i : i + 16] for i in range(0, len(numbers), 16)]


def digest(message: bytes, compression=compress) -> bytes:
    """The hash, by any implementation of the compression."""
    state = FIRST_STATE
    for block in blocks(message):
        state = compression(state, block)
    return b"".join(word.to_bytes(4, "big") for word in state)


if __name__ == "__main__":
    from tapegrad import Array, UInt, trace

    text = " ".join(sys.argv[1:]).encode()
    traced = trace(compress, Array(UInt(32), 8), Array(UInt(32), 16), name="sha256")
    print(f"{traced.circuit.size} gates, depth {traced.circuit.depth}")
    print("by the function:", digest(text).hex())
    print("by the circuit: ", digest(text, traced).hex())
