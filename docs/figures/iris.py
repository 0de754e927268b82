"""Draws `docs/images/iris.svg`: a perceptron on Fisher's iris data, trained by gradient descent on an
extended network, beside scikit-learn's. Prints the numbers. Run as `python docs/figures/iris.py`; it takes
minutes."""

from pathlib import Path
from typing import Any, cast

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_iris
from sklearn.linear_model import Perceptron

from tapegrad.targets.extended.classifier import PerceptronClassifier

ROWS, EPOCHS = 100, (1, 2, 3, 4, 6, 8, 10)
PETAL = slice(2, 4)


def main() -> None:
    """Accuracy against gradient steps, with all features; and the line that two of them give."""
    x, species = (np.asarray(part) for part in load_iris(return_X_y=True))
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], species[order] == 2
    figure = Figure(figsize=(9, 3.8))
    left, right = figure.subplots(1, 2)
    steps, ours, theirs = [], [], []
    for epochs in EPOCHS:
        model = PerceptronClassifier(epochs).fit(x[:ROWS], y[:ROWS])
        plain: Any = Perceptron(max_iter=epochs, tol=cast(Any, None), shuffle=False)
        plain.fit(model.scaled(x[:ROWS]), y[:ROWS])
        steps.append(model.run_.steps)
        ours.append([model.score(x[:ROWS], y[:ROWS]), model.score(x[ROWS:], y[ROWS:])])
        theirs.append(
            [plain.score(model.scaled(x[part]), y[part]) for part in (slice(ROWS), slice(ROWS, None))]
        )
        same = np.array_equal(model.coef_, plain.coef_) and np.array_equal(model.intercept_, plain.intercept_)
        print(f"{epochs} rounds: {steps[-1]:,} gradient steps, {ours[-1]} right; same weights: {same}")
    for column, (name, colour) in enumerate((("trained on", "tab:blue"), ("others", "tab:orange"))):
        left.plot(steps, [one[column] for one in ours], "-", color=colour, label=f"gradient descent, {name}")
        beside = {"color": colour, "mfc": "none", "label": f"scikit-learn, {name}"}
        left.plot(steps, [one[column] for one in theirs], "o", **beside)
    left.set(xlabel="gradient steps to the end of training", ylabel="classified right")
    left.set_title("1 to 10 rounds of the perceptron rule")
    model = PerceptronClassifier(10).fit(x[:ROWS, PETAL], y[:ROWS])
    accuracy = model.score(x[ROWS:, PETAL], y[ROWS:])
    print(f"petals alone: {model.run_.steps:,} gradient steps, {accuracy:.3f} right")
    across, up = np.meshgrid(np.linspace(1, 7, 200), np.linspace(0, 2.6, 200))
    grid = np.column_stack([across.ravel(), up.ravel()])
    right.contourf(across, up, model.predict(grid).reshape(across.shape), levels=1, cmap="Blues", alpha=0.3)
    for kind, name in enumerate(("setosa", "versicolor", "virginica")):
        right.plot(*x[species[order] == kind, PETAL].T, "o", markersize=3, label=name)
    right.set(xlabel="petal length, cm", ylabel="petal width, cm", title="Two features, ten rounds")
    for axes in (left, right):
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(Path(__file__).parents[1] / "images" / "iris.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
