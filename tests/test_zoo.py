"""The zoo: pairs that anyone can load and run, that do not depend on who made them, and that survive a kill;
folders that were altered are refused, and a net that is wrong stops everything."""

import json
import re
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from tapegrad._files import only_writer
from tapegrad._zoo import pairs as zoo_pairs
from tapegrad._zoo.pairs import candidate_program, family_of, make
from tapegrad._zoo.run import NETS, PAIRS, PLAN, SUMMARY, Plan, line_sum, run
from tapegrad._zoo.tensors import network_from, tensors_of
from tapegrad.cli import app
from tapegrad.errors import BrokenNet, FormatError, InputError
from tapegrad.rasp.library import READY
from tapegrad.rasp.text import read
from tapegrad.targets.decoder.sequences import SequenceNet
from tapegrad_check.folder import CheckError
from tapegrad_check.rasp.program import check
from tests.check.texts import read_back

PAGE = Path(__file__).parents[1] / "docs" / "zoo.md"
SIZE = 24


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zoo") / "rasp.zoo"
    run(Plan(), folder, SIZE, workers=1)
    return folder


@pytest.fixture
def copied(zoo, tmp_path):
    """A zoo of its own, to be spoilt."""
    subprocess.run(["cp", "-r", str(zoo), str(tmp_path / "zoo")], check=True)
    return tmp_path / "zoo"


def entries(folder):
    return [json.loads(line) for line in (folder / PAIRS).read_text().splitlines()]


def test_numpy_and_safetensors_are_enough(zoo):
    """The lines of the page, for every pair, where nothing of ours can be imported."""
    block = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block is not None
    head, function, _ = re.split(r"(?=def run)|(?=print\()", block[1])
    lines = [
        "import sys",
        "for name in ('tapegrad', 'tapegrad_check', 'jax', 'torch'): sys.modules[name] = None",
        head,
        function,
        "for line in open('rasp.zoo/pairs.jsonl'):",
        "    pair = json.loads(line)",
        "    w = load_file('rasp.zoo/' + pair['file'])",
        "    words = json.loads(sys.argv[1])[pair['name']]",
        "    print(json.dumps([run(word) for word in [*words, *(word for word, _ in pair['examples'])]]))",
    ]
    random = np.random.default_rng(1)
    wanted, words = [], {}
    for entry in entries(zoo):
        program = read(entry["program"].encode())
        tokens = [list(word) for word in product(program.vocabulary, repeat=2)]
        tokens.append(
            [program.vocabulary[n] for n in random.integers(0, len(program.vocabulary), program.length)]
        )
        words[entry["name"]] = tokens
        right = [zoo_pairs.to_json(tuple(program.evaluate(tuple(word))[program.output])) for word in tokens]
        wanted.append(right + [outputs for _, outputs in entry["examples"]])
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines), json.dumps(words)],
        cwd=zoo.parent, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [json.loads(line) for line in done.stdout.splitlines()] == wanted
    assert len(wanted) == SIZE


def test_lines(zoo):
    """Ready programs first; every other of a family of its own; sums, splits and answer keys."""
    found = entries(zoo)
    assert [entry["name"] for entry in found[: len(READY)]] == list(READY)
    assert [entry["id"] for entry in found] == list(range(SIZE))
    random = [entry["family"] for entry in found if not entry["ready"]]
    assert len(random) == len(set(random)) == SIZE - len(READY)
    assert not set(random) & {entry["family"] for entry in found if entry["ready"]}
    one, other = (next(own for own in found if own["name"] == f"rasp-dyck-{n}") for n in (1, 2))
    assert one["family"] == other["family"]
    shares = {"train": range(80), "validation": range(80, 90), "test": range(90, 100)}
    for entry in found:
        assert int(entry["family"], 16) % 100 in shares[entry["split"]]
        assert entry["line_sha256"] == line_sum(entry)
        assert entry["proved"] == "computes this source, for all inputs"
        tensors = load_file(zoo / entry["file"])
        assert len(entry["coordinates"]) == entry["width"] == tensors["embed"].shape[1]
        assert len(set(entry["coordinates"].values())) > 0.7 * entry["width"]
        assert len(entry["does"]) == entry["heads"]
        assert sum(key.endswith("query") for key in tensors) == entry["layers"]
        nodes = {node["name"] for node in entry["circuit"]["nodes"]}
        edges = entry["circuit"]["edges"]
        assert {edge["to"].partition("<")[0] for edge in edges} | {edge["from"] for edge in edges} == nodes


def test_families():
    """The length, the names of tokens and the way in which it is written do not matter; what is done does."""
    one = "rasp x\nvocabulary a b\nlength 5\noutput = width(select(tokens, tokens, ==))\n"
    same = "rasp y\nvocabulary 1 2 7\nlength 9\nx = width(select(tokens, tokens, ==))\noutput = x + 1\n"
    other = "rasp x\nvocabulary a b\nlength 5\noutput = width(select(tokens, tokens, !=))\n"
    causal = one.replace("length 5", "length 5\ncausal")
    first, second, third, fourth = (family_of(read(text.encode())) for text in (one, same, other, causal))
    assert first == second
    assert len({first, third, fourth}) == 3


@pytest.mark.parametrize(
    ("rest", "part"),
    [(0, "train"), (79, "train"), (80, "validation"), (89, "validation"), (90, "test"), (99, "test")],
)
def test_the_split_follows_from_the_family(rest, part):
    assert Plan().part(f"{1200 + rest:x}") == part


def test_a_larger_zoo_begins_with_the_smaller_one(zoo, tmp_path):
    run(Plan(), tmp_path, SIZE - 6, workers=1)
    assert entries(tmp_path) == entries(zoo)[: SIZE - 6]
    with (tmp_path / PAIRS).open("ab") as file:
        file.write(b'{"id": 18, "spl')  # as if killed while it was writing
    summary = run(Plan(), tmp_path, SIZE, workers=1)
    assert entries(tmp_path) == entries(zoo)
    assert summary["new_pairs"] == 6
    for entry in entries(zoo):
        assert (tmp_path / entry["file"]).read_bytes() == (zoo / entry["file"]).read_bytes()
    with pytest.raises(InputError, match="has 24 pairs already"):
        run(Plan(), tmp_path, SIZE - 1, workers=1)


def test_another_seed_has_other_programs():
    first, second = (candidate_program(seed, len(READY)) for seed in (0, 1))
    assert first.nodes != second.nodes


def spoil_net(folder):
    name = folder / NETS / "000003.safetensors"
    tensors = load_file(name)
    tensors["embed"][1, 1] = 2
    save_file(tensors, name)


def spoil_line(folder):
    file = folder / PAIRS
    file.write_text(file.read_text().replace('"split": "train"', '"split": "test"', 1))


def drop_line(folder):
    file = folder / PAIRS
    file.write_text("".join(file.read_text().splitlines(True)[1:]))


def drop_net(folder):
    (folder / NETS / "000003.safetensors").unlink()


def other_version(folder):
    plan = json.loads((folder / PLAN).read_text())
    (folder / PLAN).write_text(json.dumps(plan | {"tapegrad": "0.1.0"}))


@pytest.mark.parametrize(
    ("spoil", "error", "says"),
    [
        (spoil_net, FormatError, "pair 3 was altered"),
        (spoil_line, FormatError, "was altered"),
        (drop_line, FormatError, "pair 0 was altered"),
        (drop_net, FormatError, "pair 3 cannot be read"),
        (other_version, InputError, 'has tapegrad "0.1.0"'),
        (lambda folder: (folder / PLAN).unlink(), InputError, "something else than a zoo"),
        (lambda folder: (folder / PLAN).write_text("[3]"), InputError, "has format null"),
        (lambda folder: (folder / PLAN).write_text("{"), FormatError, "zoo.json"),
    ],
)
def test_altered_folders_are_refused(copied, spoil, error, says):
    spoil(copied)
    before = sorted((own.name, own.stat().st_mtime_ns) for own in copied.rglob("*"))
    with pytest.raises(error, match=says):
        run(Plan(), copied, SIZE + 1, workers=1)
    assert sorted((own.name, own.stat().st_mtime_ns) for own in copied.rglob("*")) == before


def test_other_options_are_refused(copied):
    for plan in (Plan(seed=1), Plan(split=(70, 20, 10)), Plan(proved=50)):
        with pytest.raises(InputError, match="and not"):
            run(plan, copied, SIZE, workers=1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--split", "80,10"], "no split"),
        (["--split", "80,10,x"], "no split"),
        (["--split", "80,30,-10"], "no split"),
        (["--pairs", "0"], ""),
        (["--proved", "101"], ""),
        (["--seed", "-1"], ""),
    ],
)
def test_bad_options(tmp_path, words, says):
    done = CliRunner().invoke(app, ["zoo", "-o", str(tmp_path / "zoo"), *words])
    assert done.exit_code == 2 or says in str(done.exception)
    assert done.exit_code != 0
    assert not (tmp_path / "zoo").exists()


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError):
        run(Plan(), tmp_path / "file", 3, workers=1)


def test_one_writer(zoo):
    with only_writer(zoo), pytest.raises(InputError, match="another program is writing"):
        run(Plan(), zoo, SIZE, workers=1)


# Nets that are wrong


def test_a_wrong_net_stops_everything(monkeypatch, tmp_path):
    def spoilt(net):
        found = tensors_of(net)
        if net.program.name == "rasp-reverse":
            found["unembed"] = found["unembed"][:, ::-1].copy()
        return found

    monkeypatch.setattr(zoo_pairs, "tensors_of", spoilt)
    done = CliRunner().invoke(app, ["zoo", "-o", str(tmp_path), "--pairs", "4", "--workers", "1", "--json"])
    assert done.exit_code == 1
    assert "rasp-reverse: on" in done.output
    assert [entry["name"] for entry in entries(tmp_path)] == ["rasp-length"]
    assert not (tmp_path / SUMMARY).exists()


def test_the_proof_is_of_the_matrices():
    """A weight that no sampled input tells apart, but that the checker does."""
    net = SequenceNet.build(READY["rasp-sort"].build())
    config, claims = json.loads(json.dumps(net.config())), net.certificate()
    check(config, claims, None, read_back(network_from(tensors_of(net), net)))
    for name, place in (("layers.1.query", (0, 4, 0)), ("layers.1.units", (5, 3)), ("embed", (2, 1))):
        tensors = tensors_of(net)
        tensors[name][place] += 0.25
        with pytest.raises(CheckError):
            check(config, claims, None, read_back(network_from(tensors, net)))
    for name, place in (("positions", (1, 7)), ("layers.1.out", (0, 0, 9)), ("layers.0.sums", (0, 0))):
        tensors = tensors_of(net)
        tensors[name][place] += 0.25
        with pytest.raises(BrokenNet):
            network_from(tensors, net)


def test_a_share_is_proved():
    assert make(0, 0, False).entry["proved"] is None  # type: ignore[index]
    assert make(0, 0, True).entry["proved"] is not None  # type: ignore[index]


# Many workers


@pytest.mark.slow
def test_two_workers_or_killed_gives_the_same(tmp_path):
    run(Plan(), tmp_path / "one", 120, workers=1)
    words = ["zoo", "-o", str(tmp_path / "two"), "--pairs", "120", "--workers", "2", "--json"]
    line = [sys.executable, "-m", "tapegrad.cli", *words]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    results = tmp_path / "two" / PAIRS
    while not results.exists() or results.read_bytes().count(b"\n") < 20:
        assert process.poll() is None, "it must not be over yet"
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert results.read_bytes().count(b"\n") < 120
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["pairs"] == 120
    assert entries(tmp_path / "two") == entries(tmp_path / "one")


@pytest.mark.slow
def test_on_ray(zoo, tmp_path):
    pytest.importorskip("ray")
    run(Plan(), tmp_path, SIZE, ray=True)
    assert entries(tmp_path) == entries(zoo)
