"""The table and the figure of the limits, from experiments that were run small."""

import numpy as np
import pytest

from tapegrad_papers.abbe_sandon.cross_predictability import Estimated
from tapegrad_papers.abbe_sandon.hard_functions import Arithmetic, Connectivity
from tapegrad_papers.abbe_sandon.rivals import Learned, fit, images
from tapegrad_papers.abbe_sandon.table import Limits, figure, measure, rows


@pytest.mark.slow
def test_table_and_figure(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    shown = images(3, 100, 2)
    graphs = Connectivity(6, 3, 10, shown.perceptron, 0.9, True, 0.6)
    sums = Arithmetic(3, shown.perceptron, 50, Learned(4, 1.0))
    found = Limits(measure([2], runs=3), shown, [graphs], [sums], {3: Estimated(0.2, 0.01)})
    table = rows(found)
    assert [row["what"].partition(":")[2].strip() for row in table[:3]] == ["emulator", "rcnn", "emulator"]
    assert table[0]["value"] == table[1]["value"] == table[2]["value"] == 100
    assert table[0]["rival_value"] == pytest.approx(100 * found.parities[0].accuracy.value)
    assert figure(found, tmp_path).stat().st_size > 10_000


@pytest.mark.slow
def test_the_perceptron_learns_what_is_easy() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (300, 10))
    errors = fit((x[:200], x[:200, 3]), (x[200:], x[200:, 3]), epochs=8)
    assert errors.test < 0.05
    assert len(errors.train_by_epoch) == 8
