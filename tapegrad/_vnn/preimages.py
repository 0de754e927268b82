"""Preimages of a reduced hash: is there a message with this digest?

The hash is a toy in the manner of Keccak: the message and a constant are the state s, a ring of bits, and a
round is

    s <- s + (s turned by 3) + (s turned by 7)                    linear, mixes
    s <- s + (not s turned by 1) (s turned by 2) + constant       quadratic

where + is XOR. The digest is the state after so many rounds plus the state before them, so that it cannot be
computed backwards. A message has a quarter fewer bits than the digest: most digests have no preimage. The
digest of a message that was drawn has one. All messages are tried for the others, at most 2^12, by whole
numbers of NumPy and not by the circuit.
"""

import numpy as np
from numpy.typing import NDArray

from tapegrad._draws import Draws
from tapegrad._vnn.question import Question, point
from tapegrad.circuits import words
from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.circuits.model import Circuit
from tapegrad.errors import Refused

SMALLEST, LARGEST = 1, 20_000
WIDEST = 16
"""Bits of a state; a smaller question has a smaller state, and one round."""
CONSTANT = 0b1010_0110_1110_0011
TURNS, AND_TURNS = (3, 7), (1, 2)


def shape(size: int) -> tuple[int, int, int]:
    """Bits of the state, bits of the message, rounds: the state grows first."""
    state = min(WIDEST, 4 + 2 * (size - 1))
    return state, state - state // 4, max(1, size - (WIDEST - 4) // 2)


def question(size: int, satisfiable: bool, draws: Draws) -> Question:
    """States of 4 bits and more, then more and more rounds."""
    state, message_bits, rounds = shape(size)
    messages = np.arange(1 << message_bits)
    digests = digest(messages, state, rounds)
    message = draws.one_below(len(messages))
    wanted = int(digests[message])
    if not satisfiable:
        missing = np.setdiff1d(np.arange(1 << state), digests)
        if not len(missing):
            raise Refused("every digest of this hash has a preimage", advice="Choose another size.")
        wanted = int(missing[draws.one_below(len(missing))])
    about = {"state bits": state, "message bits": message_bits, "rounds": rounds, "digest": wanted}
    asked = circuit(wanted, state, message_bits, rounds)
    if not satisfiable:
        return Question(asked, None, f"none of {len(messages):,} messages has this digest", about)
    bits = [message >> place & 1 for place in range(message_bits)]
    return Question(asked, point(bits), f"it is the digest of message {message}", about)


def digest(messages: NDArray[np.int64], state: int, rounds: int) -> NDArray[np.int64]:
    """The digests of messages, as whole numbers."""
    mask = (1 << state) - 1

    def turned(s: NDArray[np.int64], by: int) -> NDArray[np.int64]:
        by %= state
        return (s << by | s >> (state - by)) & mask

    message_bits = state - state // 4
    first = messages | CONSTANT >> message_bits << message_bits & mask
    s = first
    for _ in range(rounds):
        s = s ^ turned(s, TURNS[0]) ^ turned(s, TURNS[1])
        s = s ^ (~turned(s, AND_TURNS[0]) & turned(s, AND_TURNS[1])) ^ (CONSTANT & mask)
    return (s ^ first) & mask


def circuit(wanted: int, state: int, message_bits: int, rounds: int) -> Circuit:
    """1 where the digest of the message is the one that is wanted."""
    build = CircuitBuilder()
    message = [build.input(f"message[{place}]") for place in range(message_bits)]
    first: list[Wire] = [*message, *words.constant(build, CONSTANT >> message_bits, state - message_bits)]
    constant = words.constant(build, CONSTANT & (1 << state) - 1, state)
    s = first
    for _ in range(rounds):
        s = [words.parity(build, [s[i], *(s[(i - by) % state] for by in TURNS)]) for i in range(state)]
        one, two = ([s[(i - by) % state] for i in range(state)] for by in AND_TURNS)
        mixed = [build.and_(build.not_(a), b) for a, b in zip(one, two, strict=True)]
        s = [words.parity(build, own) for own in zip(s, mixed, constant, strict=True)]
    found = [build.xor(a, b) for a, b in zip(s, first, strict=True)]
    build.output("found", words.equal(build, found, words.constant(build, wanted, state)))
    return build.circuit(f"preimage of {wanted}")
