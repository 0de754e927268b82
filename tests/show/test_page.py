"""The page: one file, whole, small, and deaf to what names contain."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

import tapegrad as tg
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.show.page import embedded, page
from tapegrad.show.recorder import record

HOSTILE = "</script><script>alert(1)</script><!--\u2028{{title}}\"'&"


class _Reader(HTMLParser):
    """Elements with their attributes, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, dict[str, str | None], str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style", "title"):
            self.texts.append((self.open[-1], self.elements[-1][1], data))

    def text(self, tag: str, **attributes: str) -> str:
        [found] = [t for name, attrs, t in self.texts if name == tag and attrs == attributes]
        return found


def hostile_machine() -> TuringMachine:
    rules = {
        (HOSTILE, ("_",)): Rule((HOSTILE,), (1,), "<img src=x onerror=alert(2)>"),
        ("<img src=x onerror=alert(2)>", ("_",)): Rule(("_",), (1,), "end"),
    }
    return TuringMachine(rules, HOSTILE, name=HOSTILE)


@pytest.fixture(scope="module")
def hostile_page() -> str:
    return page(record(tg.compile(hostile_machine(), "tape", cells=16)))


def test_hostile_names_stay_data(hostile_page):
    reader = _Reader(hostile_page)
    assert not reader.open
    scripts = [attrs for tag, attrs in reader.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "recording"}, {}]
    assert not any(tag == "img" for tag, _ in reader.elements)
    data = json.loads(reader.text("script", type="application/json", id="recording"))
    assert data["title"] == HOSTILE
    assert reader.text("title") == f"{HOSTILE} on tape"


def test_nothing_is_loaded_from_anywhere(hostile_page):
    reader = _Reader(hostile_page)
    for tag, attrs in reader.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "img")
        assert not attrs.keys() & {"src", "href", "style", "onclick", "onload"}, (tag, attrs)
    for source in (reader.text("style"), reader.text("script")):
        assert not re.search(r"url\(|@import|import\(|fetch\(|XMLHttp|WebSocket|eval\(|innerHTML", source)


def test_the_policy_allows_just_this_style_and_this_script(hostile_page):
    reader = _Reader(hostile_page)
    [policy] = [a["content"] for t, a in reader.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "connect-src" not in rules
    for kind in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(reader.text(kind).encode()).digest()).decode()
        assert rules[f"{kind}-src"] == f"'sha256-{digest}'"


def test_the_page_is_small(hostile_page):
    data = _Reader(hostile_page).text("script", type="application/json", id="recording")
    assert len(hostile_page.encode()) - len(data.encode()) < 100_000


def test_embedded_json_is_the_same_json():
    data = {"a": HOSTILE, "b": [1, 0.5, None, True]}
    text = embedded(data)
    assert json.loads(text) == data
    assert not set("<>&\u2028\u2029") & set(text)
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded(float("nan"))


def test_show_draws_itself_in_a_notebook_and_saves(tmp_path):
    shown = tg.watch(tg.compile(hostile_machine(), "tape", cells=16))
    frame = _Reader(shown._repr_html_())
    [(tag, attrs)] = frame.elements
    assert tag == "iframe"
    assert attrs["sandbox"] == "allow-scripts"
    shown.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == attrs["srcdoc"]
    assert "3 steps" in repr(shown)
