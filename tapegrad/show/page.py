"""A recording as one HTML file that needs nothing else: no network, no fonts, no build step.

Its Content-Security-Policy names the hashes of its one style and its one script and forbids everything else:
nothing that a recording contains could load or run anything.
"""

import base64
import hashlib
import html
import json
import os
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from tapegrad._compile import Compiled, check_compiled
from tapegrad._files import write_atomically
from tapegrad._sources import kind_of
from tapegrad.circuits.model import Circuit
from tapegrad.circuits.tracer import Traced
from tapegrad.show.recorder import MOST_STEPS, Recording, record

_SCRIPTS = (
    "elements.js",
    "panels.js",
    "drawing.js",
    "network.js",
    "curve.js",
    "words.js",
    "player.js",
    "live.js",
    "live_frames.js",
    "share.js",
    "open.js",
)


def page(recording: Recording) -> str:
    """The whole page, with the recording inside."""
    data = f'<script type="application/json" id="recording">{embedded(recording.to_json())}</script>'
    return assembled(title=f"{recording.title} on {recording.target}", data=data)


def embedded(data: object) -> str:
    """JSON that cannot end the element it stands in: no `<`, no `>`, no `&`, no odd line ends."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def assembled(*, title: str, data: str = "", studio: str = "", scripts: tuple[str, ...] = ()) -> str:
    """The template with its parts in place; `data` and `studio` are markup, `title` is text."""
    style = asset("player.css")
    script = "\n".join(asset(name) for name in (*_SCRIPTS, *scripts))
    rules = [
        "default-src 'none'",
        f"style-src '{_hash(style)}'",
        f"script-src '{_hash(script)}'",
        "img-src blob:",  # a picture of the drawing, on its way to a file
        "base-uri 'none'",
        "form-action 'none'",
    ]
    if scripts:
        rules.append("connect-src 'self'")
    return filled(
        asset("player.html"),
        policy="; ".join(rules),
        title=html.escape(title),
        style=style,
        studio=studio,
        data=data,
        script=script,
    )


def asset(name: str) -> str:
    """A file of the folder `assets`."""
    return files("tapegrad.show").joinpath("assets", name).read_text(encoding="utf-8")


def filled(template: str, **parts: str) -> str:
    """Puts each part in the place of `{{name}}`, in one go: what a part contains is never looked at."""
    pieces = template.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


# A recorded run in a notebook: the page in a frame of its own.


@dataclass(frozen=True, repr=False)
class Shown:
    """What `watch` gives back; notebooks draw it, `save` writes it as a page."""

    recording: Recording

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page."""
        write_atomically(path, page(self.recording).encode())

    def _repr_html_(self) -> str:
        inside = html.escape(page(self.recording), quote=True)
        return (
            f'<iframe sandbox="allow-scripts" title="{html.escape(self.recording.title, quote=True)}" '
            f'width="100%" height="860" style="border:0" srcdoc="{inside}"></iframe>'
        )

    def __repr__(self) -> str:
        shown = self.recording
        return f"<{shown.title} on {shown.target}: {shown.steps:,} steps, {len(shown.frames):,} frames>"


def watch(compiled: Compiled, *inputs: Any, steps: int = MOST_STEPS) -> Shown:
    """A run to watch: notebooks draw it, `.save("page.html")` writes it as a page."""
    check_compiled(compiled, "watch", ", input")
    if isinstance(compiled.source, Circuit | Traced):  # numbers, as a call takes them
        inputs = kind_of(compiled.source).call(compiled.source, inputs, {}).inputs
    return Shown(record(compiled, *inputs, steps=steps))
