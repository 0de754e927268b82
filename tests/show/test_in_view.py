"""What a reader sees when a page opens, measured in Chromium: the network is in view, nothing lies over it,
no text or table is cut off; on a desktop and on a phone."""

import pytest

from tapegrad._sources import find
from tapegrad.show.page import page
from tapegrad.show.recorder import EXAMPLE, compiled_example, compiled_source, record
from tests.show.chrome import Chrome, installed

pytestmark = [pytest.mark.slow, pytest.mark.skipif(installed() is None, reason="there is no Chromium")]

SCREENS = {"desktop": (1280, 720, False), "phone": (390, 844, True), "frame": (900, 520, False)}
"""The last is what a page of the documentation gives a player."""
RUNS = {
    ("tape", "busy-beaver-4x2"): None,
    ("tape", "addition"): ["101+11"],  # a table with many columns
    ("tape", "counter8"): None,  # thousands of states, long tapes
    ("simplex", "busy-beaver-4x2"): None,
    ("simplex", "palindrome"): ["abba"],  # long names
    ("simplex", "adder8"): ["a=100", "b=55"],
    ("relu", "adder8"): ["a=100", "b=55"],
    ("relu", "counter8"): None,  # layers alone
    ("transformer", "palindrome"): ["abba"],
    ("transformer", "adder8"): ["a=100", "b=55"],
    ("transformer", "counter8"): None,
    ("transformer", "subleq-hello"): None,
    ("decoder", "rasp-sort"): ["c a d a"],
    ("decoder", "adder8"): ["a=100", "b=55"],
    ("decoder", "subleq-hello"): None,
    ("rcnn", EXAMPLE): None,
    ("rcnn", "rasp-length"): None,  # a large grid
    ("emulator", EXAMPLE): None,
    ("emulator", "subleq-hello"): None,
}
"""What is shown, by target, and on which input: what has gone wrong once is among them."""
MOST_FRAMES = 60

# Shares of the drawing's nodes that are inside the window, and on which nothing lies.
IN_VIEW = """(() => {
  const all = [...document.querySelectorAll('#stage .node')], step = Math.ceil(all.length / 400);
  const nodes = all.filter((node, i) => i % step === 0 && getComputedStyle(node).visibility !== 'hidden');
  const seen = nodes.filter((node) => {
    const box = node.querySelector('rect, circle').getBoundingClientRect();
    return box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight;
  });
  const free = seen.filter((node) => {
    const box = node.querySelector('rect, circle').getBoundingClientRect();
    const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    return top && top.closest('#stage');
  });
  return [nodes.length, seen.length, free.length];
})()"""

# Names that stick out of their boxes.
STICKING_OUT = """[...document.querySelectorAll('#stage .node')].filter((node) => {
  const text = node.querySelector('text'), body = node.querySelector('rect, circle');
  if (!text || !text.textContent || node.classList.contains('text')) return false;
  return text.getBoundingClientRect().width > body.getBoundingClientRect().width + 1;
}).map((node) => node.textContent)"""

# Texts of the drawing that reach beyond it: labels of arrows and rings, names over columns.
BEYOND = """(() => {
  const room = document.querySelector('#stage svg').getBoundingClientRect();
  return [...document.querySelectorAll('#stage svg text')].filter((text) => {
    const box = text.getBoundingClientRect();
    const out = box.left < room.left - 1 || box.right > room.right + 1 || box.top < room.top - 1;
    return text.textContent && (out || box.bottom > room.bottom + 1);
  }).map((text) => text.textContent);
})()"""

# The height of the smallest text, in pixels of the screen; where there is none, that of a large one.
LEAST_TEXT = 3.5
SMALLEST = """Math.min(99, ...[...document.querySelectorAll('#stage svg text')]
  .filter((text) => text.textContent)
  .map((text) => text.getBoundingClientRect().height / Math.max(1, text.querySelectorAll('tspan').length)))"""

# Whatever is wider than the room it has.
PARTS = "body, #room, .side, .panel, .cells, .rules, .fields, .legend, .deck, h1, .words"
CUT_OFF = f"""[...document.querySelectorAll('{PARTS}')]
  .filter((part) => part.offsetParent !== null && (part.scrollWidth > part.clientWidth + 1
    || part.id === 'title' && part.scrollHeight > part.clientHeight + 2))
  .map((part) => [part.className || part.tagName, part.scrollWidth, part.clientWidth].join(' '))"""

# The curve's height in pixels.
CURVE = (
    "(() => { const line = document.querySelector('#curve .line'); return line && line.getBBox().height; })()"
)


@pytest.fixture(scope="module")
def browser():
    with Chrome() as chrome:
        yield chrome


@pytest.fixture(scope="module", params=RUNS, ids="-".join)
def opened(request, tmp_path_factory):
    """The page of a run on each target."""
    target, name = request.param
    if name == EXAMPLE:
        compiled, inputs = compiled_example(target)
    else:
        compiled, inputs = compiled_source(find(name), target, RUNS[request.param], {}, MOST_FRAMES)
    path = tmp_path_factory.mktemp("pages") / "page.html"
    path.write_text(page(record(compiled, *inputs, steps=MOST_FRAMES)))
    return path.as_uri()


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_network_is_in_view_and_nothing_is_cut(browser, opened, screen, theme):
    width, height, mobile = SCREENS[screen]
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile
    )
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    try:
        browser.problems.clear()
        browser.open(f"{opened}?{screen}-{theme}")
        browser.wait("document.querySelectorAll('#stage .node').length > 0")
        count, seen, free = browser.value(IN_VIEW)
        assert count > 0
        assert seen == count
        assert free == count
        last = browser.value("run.recording.frames.length - 1")
        for frame in sorted({0, last // 3, last}):
            browser.value(f"show({frame})")
            assert browser.value(STICKING_OUT) == []
            assert browser.value(CUT_OFF) == []
            assert browser.value(BEYOND) == []
            assert browser.value(SMALLEST) > LEAST_TEXT
        if last > 1:  # one forward run is two frames, and one value
            assert browser.value(CURVE) > 10
        dark = browser.value("document.documentElement.classList.contains('dark')")
        assert dark == (theme == "dark")
        assert browser.problems == []
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")
        browser.call("Emulation.setEmulatedMedia", features=[])
