"""The player and the studio in a real browser, skipped where Chromium is not installed."""

import html
import json
import threading

import pytest

import tapegrad as tg
from tapegrad._sources import find
from tapegrad.machines.model import TuringMachine
from tapegrad.show.gallery import gallery
from tapegrad.show.page import page
from tapegrad.show.recorder import record
from tapegrad.show.studio import Studio
from tests.show.chrome import Chrome, installed
from tests.show.test_page import hostile_machine

pytestmark = pytest.mark.skipif(installed() is None, reason="there is no Chromium")

TAPE = (
    "[...document.querySelectorAll('#source .cells')].map(row => "
    "[...row.querySelectorAll('.cell')].map(cell => cell.textContent).join('').replace(/^0+|0+$/g, ''))[0]"
)
HEAD = "document.querySelector('#source .cell.mark').textContent"


@pytest.fixture(scope="module")
def browser():
    with Chrome() as chrome:
        yield chrome


@pytest.fixture
def beaver(browser, tmp_path):
    """The page of the busy beaver with three states, open in the browser; and its states."""
    machine = find("busy-beaver-3x2").source
    assert isinstance(machine, TuringMachine)
    path = tmp_path / "page.html"
    path.write_text(page(record(tg.compile(machine, "tape", cells=32))))
    browser.problems.clear()
    browser.open(path.as_uri())
    return browser, list(machine.run(machine.start()))


def expected(state) -> str:
    cells = state.tapes[0]
    return "".join(cells.get(i, "0") for i in range(min(cells), max(cells) + 1)) if cells else ""


def scrub(browser, frame: int) -> None:
    browser.value(
        f"(() => {{ const s = document.getElementById('scrubber'); s.value = {frame};"
        "s.dispatchEvent(new Event('input')); })()"
    )


def test_scrubbing_shows_the_right_tape_everywhere(beaver):
    browser, states = beaver
    for step, state in enumerate(states):
        scrub(browser, step + 1)
        assert browser.value(TAPE) == expected(state)
        assert browser.value(HEAD) == state.tapes[0].get(state.heads[0], "0")
        weights = browser.value(
            "[...document.querySelectorAll('#network .cell')].slice(0, "
            "document.querySelectorAll('#network .cell').length / 2).map(c => c.textContent)"
        )
        assert "".join("1" if w == "1" else "0" for w in weights).strip("0") == expected(state)
        assert f"gradient step {step + 1} of" in browser.value("document.getElementById('step').textContent")
    assert browser.problems == []


def test_keys_buttons_and_play_move_it(beaver):
    browser, states = beaver
    now = "Number(document.getElementById('scrubber').value)"
    last = len(states)
    browser.press("End", 35)
    assert browser.value(now) == last
    browser.press("ArrowLeft", 37)
    assert browser.value(now) == last - 1
    browser.press("Home", 36)
    assert browser.value(now) == 0
    browser.value("document.getElementById('forward').click()")
    assert browser.value(now) == 1
    browser.value("document.getElementById('speed').value = 60")
    browser.value("document.activeElement.blur()")
    browser.press(" ", 32)
    assert browser.value("document.getElementById('play-or-pause').getAttribute('aria-label')") == "Pause"
    browser.wait(f"{now} === {last}")
    assert browser.value("document.getElementById('play-or-pause').getAttribute('aria-label')") == "Play"
    assert browser.problems == []


def test_an_address_that_plays_does_not_scroll_the_page_around_it(beaver):
    """A part of that name would be scrolled to, and with it the page that has the player in a frame."""
    browser, _ = beaver
    browser.value("location.hash = 'play'")
    assert browser.value("document.querySelector(':target') === null")


def test_a_player_in_a_frame_has_the_colours_of_the_site(browser, tmp_path):
    """Not those of the system, where the page around it says which it has, as Material's do."""
    player = page(record(tg.compile("busy-beaver-2x2", "tape", cells=8)))
    site = tmp_path / "site.html"
    frame = f'<iframe srcdoc="{html.escape(player)}"></iframe>'
    site.write_text(f'<!doctype html><body data-md-color-scheme="slate">{frame}</body>')
    browser.open(site.as_uri())
    dark = "document.querySelector('iframe').contentDocument.documentElement.classList.contains('dark')"
    browser.wait(dark)
    browser.value("document.body.dataset.mdColorScheme = 'default'")
    browser.wait(f"!{dark}")
    browser.value("document.body.dataset.mdColorScheme = 'slate'")
    browser.wait(dark)


def test_hovering_explains_a_weight_in_words(beaver):
    browser, _ = beaver
    scrub(browser, 1)
    words = "document.getElementById('words').textContent"
    browser.hover("#network .cell.mark")
    browser.wait(f"{words}.includes('Tape 1, cell 0')")
    browser.value("document.querySelector('#network .cells').focus()")
    browser.press("ArrowDown", 40)
    browser.press("ArrowDown", 40)
    assert "the head of tape 1 is at cell 0" in browser.value(words)
    assert "Now 1." in browser.value(words)


def test_light_and_dark(beaver):
    browser, _ = beaver
    colour = "getComputedStyle(document.body).backgroundColor"
    light = browser.value(colour)
    browser.value("document.getElementById('theme').click()")
    assert browser.value(colour) != light
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.call("Page.reload")
    browser.wait(f"document.readyState === 'complete' && {colour} !== '{light}'")
    browser.call("Emulation.setEmulatedMedia", features=[])


def test_nothing_is_wider_than_a_phone(beaver):
    browser, _ = beaver
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=1, mobile=True
    )
    try:
        assert browser.value("document.documentElement.scrollWidth") <= 360
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


def test_hostile_names_are_shown_and_do_nothing(browser, tmp_path):
    path = tmp_path / "page.html"
    machine = hostile_machine()
    path.write_text(page(record(tg.compile(machine, "tape", cells=16))))
    browser.problems.clear()
    browser.open(path.as_uri())
    assert browser.value("document.getElementById('title').textContent") == f"{machine.name} on tape"
    assert browser.value("document.images.length") == 0
    assert browser.problems == []


def test_studio_paste_run_scrub_and_errors(browser):
    with Studio(seconds=50) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        browser.problems.clear()
        browser.open(server.url)
        browser.wait("!document.getElementById('player').hidden")  # a result as the page opens
        assert browser.value("run.recording.steps") == 108
        browser.wait("!document.getElementById('go').disabled")
        _submit(browser, "1RB1RZ_1LB0RC_1LC1LA", "cells=32")
        browser.wait("run.recording.steps === 22")
        machine = find("busy-beaver-3x2").source
        assert isinstance(machine, TuringMachine)
        for step, state in enumerate(machine.run(machine.start())):
            scrub(browser, step + 1)
            assert browser.value(TAPE) == expected(state)
        assert browser.problems == []
        _submit(browser, "this is no machine", "")
        browser.wait("!document.getElementById('error').hidden")
        assert "known format" in browser.value("document.getElementById('error').textContent")
        browser.value("document.getElementById('source-text').value = 'one\\ntwo\\nthree'")
        browser.value("complain('state Q is not defined (line 2)')")
        assert browser.value("document.querySelector('#gutter .bad').textContent") == "2"
        stripe = "document.getElementById('stripe').getBoundingClientRect().top"
        second = "document.querySelectorAll('#gutter div')[1].getBoundingClientRect().top"
        assert abs(browser.value(f"{stripe} - {second}")) < 3
        browser.value("at('source-text').dispatchEvent(new Event('input'))")  # mended: the mark goes
        assert browser.value("document.querySelector('#gutter .bad')") is None
        assert browser.value("document.getElementById('stripe').hidden")
        simplex = next(i for i, entry in enumerate(gallery(False)) if entry.target == "simplex")
        browser.value(f"at('ready').value = {simplex}; at('ready').dispatchEvent(new Event('change'))")
        browser.wait("run.recording.target === 'simplex' && !at('go').disabled")
        assert browser.value("run.recording.title") == "increment"
        assert browser.value("at('error').hidden && at('editor').hidden")
        server.shutdown()
        thread.join()


def _submit(browser, source: str, options: str) -> None:
    for field, text in (("source-text", source), ("options", options)):
        browser.value(f"document.getElementById('{field}').value = {json.dumps(text)}")
    browser.value("document.getElementById('go').click()")
