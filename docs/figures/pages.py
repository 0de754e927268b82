"""What `mkdocs build` adds to the pages: live players, and formulas drawn as formulas. Named in mkdocs.yml.

A line of a link to `player.md`, a colon and `tapegrad show ... -o NAME.html` in backticks is just that on
GitHub. In the site it becomes a frame with that run, and the command is run to make it. What it writes
lies in the site alone, never among the sources. `$...$` and `$$...$$` outside code become MathML, which a
browser draws by itself, without scripts or fonts from elsewhere; GitHub draws the same text.
"""

import html
import re
import shlex
import subprocess
import sys
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

PLAYER = re.compile(
    r"^\[(?P<title>[^]\n]+)\]\(player\.md\): `tapegrad (?P<show>show [^`\n]+ -o (?P<name>[\w-]+\.html))`$",
    re.MULTILINE,
)
CODE_OR_FORMULA = re.compile(
    r"(?P<code>^(?P<fence>```+).*?^(?P=fence)$|^(?: {4}|\t)[^\n]*$|(?P<ticks>`+).+?(?P=ticks))"
    r"|\$\$(?P<display>.+?)\$\$|(?<![\\$\w])\$(?P<inline>[^\s$](?:[^$]*?[^\s$])?)\$(?![\w$])",
    re.MULTILINE | re.DOTALL,
)
"""Code comes first, so that a dollar sign in code is passed over."""

players: dict[str, str] = {}
"""The command of each player that the pages of this build show, by the file that it writes."""


def drawn(markdown: str) -> str:
    """The page with MathML in place of its formulas."""

    def element(found: re.Match[str]) -> str:
        if found["code"]:
            return found["code"]
        latex = " ".join((found["display"] or found["inline"]).split())
        # A line may begin with a span, and not with an element that Markdown takes for a block of its own.
        return f"<span>{convert(latex, display='block' if found['display'] else 'inline')}</span>"

    return CODE_OR_FORMULA.sub(element, markdown)


def framed(markdown: str, url: str) -> str:
    """The page at this address with frames in place of its lines about players, which are noted."""

    def frame(found: re.Match[str]) -> str:
        name, show, title = found["name"], found["show"], html.escape(found["title"])
        if players.setdefault(name, show) != show:
            raise PluginError(
                f"two pages write {name}, by different commands: {players[name]!r} and {show!r}"
            )
        source = get_relative_url(f"players/{name}", url)
        return (
            f'<iframe class="player" src="{source}#play" width="100%" height="520" loading="lazy" '
            f'title="{title}"></iframe>'
            f'\n\n{title} (<a href="{source}">by itself</a>): `tapegrad {show}`'
        )

    return PLAYER.sub(frame, markdown)


def on_pre_build(config: MkDocsConfig) -> None:
    """Forgets the players of an earlier build, as `mkdocs serve` makes many."""
    players.clear()


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Called by MkDocs for every page, before it becomes HTML."""
    return drawn(framed(markdown, page.url))


def on_post_build(config: MkDocsConfig) -> None:
    """Runs the commands, in the folder of the site that their pages belong in."""
    folder = Path(config.site_dir) / "players"
    folder.mkdir(parents=True, exist_ok=True)
    for name, show in players.items():
        command = [str(Path(sys.executable).with_name("tapegrad")), *shlex.split(show)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        if done.returncode or not (folder / name).exists():
            raise PluginError(f"tapegrad {show} failed: {done.stderr or done.stdout}")
