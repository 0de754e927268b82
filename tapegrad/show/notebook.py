"""A recorded run in a notebook: the page in a frame of its own."""

import html
import os
from dataclasses import dataclass

from tapegrad.files import write_atomically
from tapegrad.show.page import page
from tapegrad.show.recording import Recording


@dataclass(frozen=True, repr=False)
class Shown:
    """What `compiled.show(...)` gives back; notebooks draw it, `save` writes it as a page."""

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
