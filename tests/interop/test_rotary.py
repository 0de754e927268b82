"""Places from rotations: at every position of a long horizon they are those of the table."""

import json

import numpy as np
import pytest
from safetensors.numpy import load as parse_tensors

from tapegrad.attention.tokens import BEGIN
from tapegrad.errors import Refused
from tapegrad.interop.huggingface import stock_of
from tapegrad.interop.rotary import Rotary, lost
from tapegrad.machines.library import ready
from tests.interop.stock_in_numpy import frequencies
from tests.interop.texts import decoder, files_of, two_tapes

HORIZON = 100_000


def scores_of_the_first_token(folder: dict[str, bytes], heads: int) -> tuple[np.ndarray, np.ndarray]:
    """Of the heads that find places, at all positions: by the weights of a Llama, in single precision. And
    the largest score that each could have."""
    config, w = json.loads(folder["config.json"]), parse_tensors(folder["model.safetensors"])
    size, count = config["head_dim"], config["num_attention_heads"]
    angles = np.arange(HORIZON, dtype=np.float32)[:, None] * frequencies(config)
    cosine, sine = np.cos(angles), np.sin(angles)
    begin, found, largest = w["model.embed_tokens.weight"][BEGIN], [], []
    for head in range(heads):
        name, place = f"model.layers.{head // count}.self_attn", head % count
        own = slice(place * size, (place + 1) * size)
        query = w[f"{name}.q_proj.bias"][own].reshape(2, -1)
        key = (w[f"{name}.k_proj.weight"] @ begin)[own].reshape(2, -1)
        turned = query[0] * cosine - query[1] * sine, query[1] * cosine + query[0] * sine
        found.append((turned[0] @ key[0] + turned[1] @ key[1]) / np.float32(np.sqrt(size)))
        largest.append(np.linalg.norm(query) * np.linalg.norm(key) / np.sqrt(size))
        assert not (w[f"{name}.q_proj.weight"][own]).any()
        assert not w[f"{name}.k_proj.bias"][own].any()
    return np.array(found), np.array(largest)


@pytest.mark.parametrize("machine", [ready("busy-beaver-4x2"), two_tapes()])
def test_every_place_up_to_a_hundred_thousand(machine):
    net = decoder(machine, HORIZON)
    stock = stock_of(net, "llama")
    assert isinstance(stock, Rotary)
    scores, largest = scores_of_the_first_token(files_of(net, machine, "llama"), len(stock.halves))
    # Softmax over 100,000 keys: by 25 the first token is beyond all others, or they are beyond it.
    assert np.abs(scores).min() > 25
    # Half a token's turn from 0 at least, but for the share that rounding may take.
    turns = np.pi / (net.words.record << np.array([number for number, _ in stock.halves]))
    assert (np.abs(scores).min(axis=1) > (1 - lost(HORIZON)) * largest * np.sin(turns / 2)).all()
    half = dict(zip(stock.halves, scores > 0, strict=True))
    table, record = net.positions, net.words.record
    rows = table.rows(np.arange(HORIZON)).astype(bool)[:, : table.width]
    for bit in range(table.bits):
        assert np.array_equal(~half[bit, 0][1:], rows[1:, bit])
        before = ~half[bit, record - 1]
        assert np.array_equal(before[record:], rows[record:, table.bits + bit])
        assert before[1:record].all()  # a record that is not there
    for slot in range(record):
        after = half[0, slot + 1] if slot + 1 < record else ~half[0, 0]
        assert np.array_equal((half[0, slot] != after)[1:], rows[1:, 2 * table.bits + slot])


def test_horizons_that_rotations_cannot_tell_apart_are_refused():
    assert lost(200_000) < 1 / 2 < lost(220_000)
    for family in ("llama", "gpt-neox"):
        with pytest.raises(Refused, match="rotations"):
            stock_of(decoder(ready("increment"), 220_000), family)
    assert stock_of(decoder(ready("increment"), 200_000), "llama").layers


@pytest.mark.parametrize("family", ["llama", "gpt-neox"])
def test_places_in_pytorch(family, tmp_path):
    """Two tokens, the second at any position: what the layers in front write is the row of the table."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from tests.interop.texts import written

    machine = ready("busy-beaver-4x2")
    net = decoder(machine, HORIZON)
    finding = len(stock_of(net, family).layers) - len(net.parts.layers)
    model = transformers.AutoModelForCausalLM.from_pretrained(written(tmp_path / "net", net, machine, family))
    random = np.random.default_rng(0)
    places = np.unique(np.concatenate([np.arange(1, 64), random.integers(64, HORIZON, 1500), [HORIZON - 1]]))
    positions = torch.tensor(np.stack([np.zeros_like(places), places], axis=1))
    tokens = torch.tensor([[BEGIN, 3]]).expand(len(places), -1)
    with torch.inference_mode():
        hidden = model(tokens, position_ids=positions, output_hidden_states=True).hidden_states[finding]
    table = net.positions
    rows = table.rows(places)
    rows[: net.words.record - 1, table.bits : 2 * table.bits] = 1  # a record that is not there
    found = hidden[:, :, table.first : table.first + table.width].numpy()
    assert np.array_equal(found[:, 1], rows)
    assert not found[:, 0].any()
