"""Histories and their pictures."""

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad.errors import InputError
from tapegrad.machines.library import busy_beaver
from tapegrad.targets.descent.net import record
from tapegrad.targets.tape.net import TapeNet


def test_a_history_is_the_run_and_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from tapegrad.targets.descent.net import plot_history

    compiled = compile(busy_beaver("3x2"), "tape", cells=64)
    assert isinstance(compiled.net, TapeNet)
    history = record(compiled.net, compiled.start())
    assert history.losses.shape == (23,)  # the start, the labels, 21 steps
    assert np.all(history.losses[1:-1] > history.stop)
    assert history.losses[-1] == 0.5
    assert history.deviation == 0
    assert (history.tapes[-1] > 0).sum() == 5
    plot_history(history, tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError):
        record(compiled.net, compiled.start(), 0)
