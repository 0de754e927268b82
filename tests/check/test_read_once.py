"""What a folder says twice is refused: of two, a person may read the first and a program the last."""

import hashlib
import json
from pathlib import Path

import pytest

import tapegrad as tg
from tapegrad.errors import BrokenNet
from tapegrad.interop.disguise import disguise
from tapegrad.interop.disguised import load_disguised, save_disguised
from tapegrad.rasp.library import READY
from tapegrad_check import CheckError, check
from tapegrad_check.folder import CERTIFICATE, CONFIG, MODEL, NETWORK
from tapegrad_check.rasp.answer_key import KEY


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of an adder that is proved."""
    folder = tmp_path_factory.mktemp("nets") / "adder"
    tg.save(tg.compile(tg.read("adder2"), "relu"), folder)
    return {name: (folder / name).read_bytes() for name in (CONFIG, NETWORK, MODEL, CERTIFICATE)}


def written(folder: Path, files: dict[str, bytes]) -> Path:
    """These files, the sums renewed."""
    certificate = json.loads(files[CERTIFICATE])
    for name in certificate["sha256"]:
        old, new = certificate["sha256"][name], hashlib.sha256(files[name]).hexdigest()
        files[CERTIFICATE] = files[CERTIFICATE].replace(old.encode(), new.encode())
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def refused_by_both(folder: Path, said: str) -> None:
    with pytest.raises(CheckError, match=said):
        check(folder)
    with pytest.raises(BrokenNet, match=said):
        tg.load(folder)


@pytest.mark.parametrize(
    ("name", "key", "first"),
    [
        (CONFIG, "source", {"kind": "circuit", "name": "an adder that a person reads"}),
        (CONFIG, "net", {}),
        (CERTIFICATE, "claims", {"at_outputs": 0}),
    ],
)
def test_a_key_in_front_of_the_one_that_counts(
    name: str, key: str, first: object, saved: dict[str, bytes], tmp_path: Path
) -> None:
    in_front = f'{{"{key}": {json.dumps(first)},'.encode()
    forged = saved | {name: saved[name].replace(b"{", in_front, 1)}
    assert json.loads(forged[name]) == json.loads(saved[name])
    refused_by_both(written(tmp_path / "net", forged), f"the key '{key}' stands there twice")


def test_a_key_within_another(saved: dict[str, bytes], tmp_path: Path) -> None:
    forged = saved | {CONFIG: saved[CONFIG].replace(b'"source": {', b'"source": {"name": "another",', 1)}
    refused_by_both(written(tmp_path / "net", forged), "the key 'name' stands there twice")


def test_an_array_of_two_descriptions(saved: dict[str, bytes], tmp_path: Path) -> None:
    """The header of safetensors is JSON, too."""
    length = int.from_bytes(saved[MODEL][:8], "little")
    header, numbers = saved[MODEL][8 : 8 + length], saved[MODEL][8 + length :]
    (name, described), *_ = ((k, v) for k, v in json.loads(header).items() if v["dtype"] == "U8")
    other = {name: described | {"dtype": "I8"}}
    header = json.dumps(other)[:-1].encode() + b"," + header.strip()[1:]
    header += b" " * (-len(header) % 8)
    forged = saved | {MODEL: len(header).to_bytes(8, "little") + header + numbers}
    refused_by_both(written(tmp_path / "net", forged), f"the key '{name}' stands there twice")


def test_the_source_of_a_net_in_disguise(tmp_path: Path) -> None:
    """It was compared with nothing, whatever config.json said; and the answer key is JSON, too."""
    plain = tg.compile(READY["rasp-histogram"].build(), "decoder")
    save_disguised(disguise(plain, basis="hadamard"), tmp_path / "net")
    files = {path.name: path.read_bytes() for path in (tmp_path / "net").iterdir()}
    config = json.loads(files[CONFIG])
    config["source"] = {"kind": "rasp program", "name": "what a person reads"}
    forged = written(tmp_path / "named", files | {CONFIG: json.dumps(config).encode()})
    with pytest.raises(CheckError, match="in its answer key, and nowhere else"):
        check(forged)
    twice = files[KEY].replace(b"{", b'{"decoys": {"heads": [], "units": []},', 1)
    forged = written(tmp_path / "twice", files | {KEY: twice})
    for reader, error in ((check, CheckError), (load_disguised, BrokenNet)):
        with pytest.raises(error, match="the key 'decoys' stands there twice"):
            reader(forged)
