"""Runs the notebooks in `examples/notebooks` from top to bottom, and stores what their cells print and draw.

This is no Jupyter. Of what Jupyter does, it does what these notebooks need: the cells share one set of names
and run in order; what a cell prints is kept, and so is the `repr` of its last line, if that is an expression;
open figures of matplotlib become pictures. No magics, no HTML, and an error ends it. Run as
`python docs/figures/notebooks.py`.
"""

import ast
import base64
import contextlib
import io
import json
import linecache
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))
Output = dict[str, Any]


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells that are run."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(notebook: dict[str, Any]) -> Iterator[list[Output]]:
    """The outputs of one code cell after the other, in the form in which notebooks store them."""
    plt.switch_backend("agg")  # figures are written, no window opens
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code_cells(notebook), start=1):
        source, file = "".join(cell["source"]), f"<cell {number}>"
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
        body, last, value = ast.parse(source).body, None, None
        if body and isinstance(end := body[-1], ast.Expr):
            last = ast.Expression(end.value)
            body.pop()
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(ast.Module(body, []), file, "exec"), names)
            if last:
                value = eval(compile(last, file, "eval"), names)
        yield list(_outputs(printed.getvalue(), value, number))


def _outputs(printed: str, value: Any, number: int) -> Iterator[Output]:
    if printed:
        yield {"output_type": "stream", "name": "stdout", "text": printed.splitlines(keepends=True)}
    for figure in map(plt.figure, plt.get_fignums()):
        file = io.BytesIO()
        figure.savefig(file, format="png", metadata={"Software": None})
        picture = {
            "image/png": base64.b64encode(file.getvalue()).decode(),
            "text/plain": ["<a figure>"],
        }
        yield {"output_type": "display_data", "data": picture, "metadata": {}}
    plt.close("all")
    if value is not None:
        text = {"text/plain": repr(value).splitlines(keepends=True)}
        yield {"output_type": "execute_result", "execution_count": number, "data": text, "metadata": {}}


def text_of(outputs: list[Output]) -> str:
    """What the outputs of a cell say in letters; a figure is only named."""
    return "\n".join(
        "".join(one["text"] if one["output_type"] == "stream" else one["data"]["text/plain"])
        for one in outputs
    )


def main() -> None:
    """Stores fresh outputs in every notebook."""
    for path in NOTEBOOKS:
        notebook = json.loads(path.read_text())
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            found = list(run(notebook))
        for number, (cell, outputs) in enumerate(zip(code_cells(notebook), found, strict=True), start=1):
            cell |= {"execution_count": number, "outputs": outputs}
        beside = path.with_suffix(".tmp")
        beside.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
        os.replace(beside, path)
        print(f"{path.name}: {len(found)} cells")


if __name__ == "__main__":
    main()
