"""The target `transformer` where it runs circuits, programs and machines with several tapes: the position at
hand layer by layer, where its heads look, and what it means."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import Compiled
from tapegrad._panels import Fields, Panel
from tapegrad._sources import kind_of
from tapegrad.attention.clocked import ClockPorts
from tapegrad.errors import BrokenNet
from tapegrad.networks.heads import Watched, Watching
from tapegrad.show.drawing.position import Inside, Lit, Position, PositionMoment
from tapegrad.show.drawing.scene import FIELD, HERE, LATER
from tapegrad.show.memory_wiring import Wiring, wiring
from tapegrad.show.memory_words import Found, words_of
from tapegrad.show.views import Heights
from tapegrad.targets.transformer.memory_net import Decoding, MemoryNet

COPIES, READS = 0, 1
COLOURS = ("copies what an earlier step wrote", "copies from a token of the input")
LEGEND = (
    ("plus", "a bit that is 1"),
    ("here", "computed just now"),
    ("later", "not computed yet"),
    ("flow", "carries a 1"),
)
BARS = (
    ("plus", "a bar for each layer: the more of its bits are 1, the darker"),
    ("here", "the newest position, and the layer computed last"),
)
ALONE_LEGEND = (("here", "the newest position"),)
MOST_WATCHED = 3_000_000
"""Layers computed once more to see what heads look at, each counted by its width as well."""
MOST_STAGES = 120
"""Frames of a short run that is shown layer by layer."""
ABOVE, BELOW, ALONE = 8, 12, 60
"""Positions and tokens that are shown at once; positions where there is nothing else to show."""
READING = re.compile(r"read \d+ of ([^,]+)(?:, ([^,]+))?, (given|written)")


class MemoryView:
    """Each step is taken once more to see the attention and every bit, and must arrive at the output of the
    net. Where that would take too long, there are only the positions with what they mean."""

    step_name = "decoder step"
    curves = ("bits that are 1", "distance from exact bits")

    def __init__(self, compiled: Compiled, carry: Decoding) -> None:
        net = compiled.net
        assert isinstance(net, MemoryNet)
        self.net, self.compiled, self.words = net, compiled, words_of(net)
        blocks, width = len(net.decoder.blocks), net.stream.width
        steps = len(carry.first.trace) if isinstance(net.machine, ClockPorts) else net.horizon
        self.sees_every_step = steps * blocks * (1 + width / 2000) <= MOST_WATCHED
        self.staged = self.sees_every_step and steps * blocks <= MOST_STAGES
        self.watching = Watching(net.network, net.reading, net.given(carry))
        self.network_values: dict[str, NDArray[Any]] | None = None
        self.tokens = [self._token(token) for token in carry.tokens]
        self.shown = list(range(min(BELOW, len(self.tokens))))
        """Tokens that stand below, and for each when it was looked at last."""
        self.looked = [-1] * len(self.shown)
        self.steps: dict[int, str] = {}
        """Positions written so far, and for each the words of memory that its step has written."""
        self.writes: dict[int, dict[str, str]] = {}
        self.wiring = wiring(net) if self.sees_every_step else Wiring(Inside(), [], [], {}, [])
        self.notes: list[str] = []
        if not self.sees_every_step:
            self.notes.append("The network is large: what its heads look at is not computed for this page.")
        if self.sees_every_step and len(self.tokens) > BELOW:
            self.notes.append(f"Of {len(self.tokens):,} tokens those are shown that were looked at lately.")
        if self.words.note:
            self.notes.append(self.words.note)
        self.panels: list[Panel] = [
            Position(
                "The position that the transformer computes, and where it looks",
                self.wiring.inside,
                LEGEND if self.wiring.ends else BARS if self.sees_every_step else ALONE_LEGEND,
                COLOURS if self.sees_every_step else (),
                "A position that the transformer has written.",
                "A token of the input.",
            ),
            Fields("Decoded from the network"),
        ]

    def frame(self, carry: Decoding) -> tuple[list[Any], Heights]:
        return self.stages(carry)[-1]

    def stages(self, carry: Decoding) -> list[tuple[list[Any], Heights]]:
        """A short run layer by layer, a longer one step by step."""
        lowered = self.compiled.lowered
        fields = {"state": kind_of(lowered).state_text(lowered, self.net.decode(carry))}
        off = self.net.deviation(carry)
        return [([moment, fields], (on, off)) for moment, on in self._moments(carry)]

    def _moments(self, carry: Decoding) -> list[tuple[PositionMoment, float]]:
        on = float((carry.output > 0.5).sum())
        if carry.steps == 0:
            moment = PositionMoment(
                self.words.begin, (), self._below([]), self._known(carry.output, None, -1)
            )
            return [(moment, on)]
        self.steps[carry.steps - 1] = self.words.step(carry.steps, carry.output, carry)
        self.writes[carry.steps - 1] = self.words.writes(carry.output)
        if not self.sees_every_step:
            said = self.words.caption(carry.steps, carry.output, carry.output, None, carry)
            return [(PositionMoment(said, self._above([], ALONE)[1], self._below([])), on)]
        seen = self.watching.step()
        self.network_values = seen.values
        if not np.allclose(seen.output, carry.output, atol=1e-4):
            raise BrokenNet(f"the attention of decoder step {carry.steps - 1} cannot be recomputed")
        return self._watched(carry, seen)

    def _watched(self, carry: Decoding, seen: Watched) -> list[tuple[PositionMoment, float]]:
        found = self._found(seen)
        numbers, above = self._above([one.place for one in found if one.written], ABOVE)
        below = self._below([one.place for one in found if not one.written])
        every = [
            (
                one.block,
                (
                    self.wiring.of_block[one.block],
                    numbers.index(one.place) if one.written else -1 - self.shown.index(one.place),
                    one.weight,
                    COPIES if one.written else READS,
                ),
            )
            for one in found
        ]
        said = self.words.caption(carry.steps, seen.start, carry.output, found, carry)
        last = len(self.net.decoder.blocks) - 1
        whole = PositionMoment(
            said,
            above,
            below,
            self._known(seen.made, carry.output, last),
            self._carrying(seen, range(last + 1)),
            [look for _, look in every],
        )
        moments = []
        for block in range(last) if self.staged else ():
            stage = replace(
                whole,
                above=[*above[:-1], (f"{carry.steps}: …", HERE)],
                caption=self._stage_caption(block, seen),
                nodes=self._known(seen.made, None, block),
                edges=self._carrying(seen, range(block, block + 1)),
                looks=[look for own, look in every if own == block],
            )
            moments.append((stage, float((np.delete(seen.made, self._later(block)) > 0.5).sum())))
        return [*moments, (whole, float((seen.made > 0.5).sum()))]

    def _later(self, block: int) -> NDArray[np.intp]:
        """What blocks between this one and the last have made."""
        own = [
            np.concatenate([later.attended(), np.asarray(later.adds_to)])
            for later in self.net.decoder.blocks[block + 1 : -1]
        ]
        return np.concatenate([np.zeros(0, np.intp), *own]).astype(np.intp)

    def _found(self, seen: Watched) -> list[Found]:
        """What is read: of each word what a step wrote last, or else what was given. The position at which a
        head finds a write is the one that began with it, so that the step before has written it."""
        found: dict[str, Found] = {}
        for look in seen.looks:
            reading = READING.fullmatch(self.net.decoder.blocks[look.block].purpose)
            at = int(look.weights.argmax())
            if reading is None or not at:  # a search for a digit of a step's number, or nothing found
                continue
            written, place = look.own_steps, at - 2 if look.own_steps else at - 1
            what = (
                self.writes[place][reading[2] or reading[1]]
                if written
                else self.tokens[place].partition(":")[0]
            )
            port = reading[0].rpartition(", ")[0]
            found[port] = Found(look.block, reading[1], what, written, place, float(look.weights[at]))
        return list(found.values())

    def _stage_caption(self, block: int, seen: Watched) -> str:
        own, count = self.net.decoder.blocks[block], len(self.net.decoder.blocks)
        new = np.zeros(0, int) if own.adds_to is None else np.asarray(own.adds_to)
        on = int((seen.made[new] > 0.5).sum())
        where = f"Layer {block + 1} of {count}"
        if own.attentions():
            copied = f"copies {len(new) - 1} bits from there"
            return f"{where} is a head of attention: it looks for the token with the inputs, and {copied}."
        ones = (
            f"It is {on}." if len(new) == 1 else f"Of these {len(new)}, {on} {'is' if on == 1 else 'are'} 1."
        )
        circled = "bit" if len(new) == 1 else "bits"
        return f"{where}: ReLU units compute the circled {circled} from one or two earlier ones each. {ones}"

    # What stands above and below.

    def _above(self, wanted: list[int], most: int) -> tuple[list[int], list[tuple[str, int]]]:
        """The latest positions, and those that are looked at."""
        newest = max(self.steps)
        latest = [step for step in sorted(self.steps) if step not in wanted]
        numbers = sorted({*latest[-max(1, most - len(set(wanted))) :], *wanted})
        marks = dict.fromkeys(wanted, FIELD) | {newest: HERE}
        return numbers, [(self.steps[step], marks.get(step, 0)) for step in numbers]

    def _below(self, wanted: list[int]) -> list[tuple[str, int]]:
        """The tokens, with those that are looked at; they take the places of those not looked at for long."""
        for token in wanted:
            if token not in self.shown:
                free = [place for place in range(len(self.shown)) if self.shown[place] not in wanted]
                place = min(free, key=lambda place: self.looked[place])
                self.shown[place] = token
        now = len(self.steps)
        self.looked = [
            now if token in wanted else before for token, before in zip(self.shown, self.looked, strict=True)
        ]
        return [(self.tokens[token], FIELD if token in wanted else 0) for token in self.shown]

    def _token(self, token: NDArray[np.floating]) -> str:
        parts, first = [], 0
        for own in self.net.layout.token:
            bits = token[first : first + own.width]
            parts.append(sum(1 << place for place, bit in enumerate(bits) if bit > 0.5))
            first += own.width
        return self.words.token(self.net.layout.banks[parts[0]], *parts[1:])

    # What is lit inside.

    def _known(
        self, vector: NDArray[np.floating], output: NDArray[np.floating] | None, upto: int
    ) -> list[Lit]:
        """Nodes as far as they are computed."""
        last = len(self.net.decoder.blocks) - 1
        nodes: list[Lit] = []
        for node, (block, coordinates) in enumerate(
            zip(self.wiring.block_of, self.wiring.holds, strict=True)
        ):
            if block > upto:
                nodes.append((node, 0.0, LATER))
                continue
            held = output if block == last and output is not None else vector
            share = float((held[coordinates] > 0.5).mean()) if len(coordinates) else 0.0
            now = block == upto and block >= 0
            if share or now:
                nodes.append((node, share, HERE if now else 0))
        return nodes

    def _carrying(self, seen: Watched, blocks: range) -> list[tuple[int, float, int]]:
        """Edges to nodes of these layers that come from a bit that is 1."""
        on = [bool((seen.made[own] > 0.5).any()) for own in self.wiring.holds]
        return [
            (edge, 1.0, 0)
            for edge, (a, b) in enumerate(self.wiring.ends)
            if on[a] and self.wiring.block_of[b] in blocks
        ]
