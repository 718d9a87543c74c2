"""Runs a notebook as it stands, cell by cell in this process, and puts what comes out into it: texts and plots.

    python tests/notebook.py examples/first_query.ipynb

No server and no kernel are needed: a cell is Python, and a plot is what `plt.show()` would have shown.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]


def executed(notebook: Notebook) -> Notebook:
    """The notebook with the outputs of all of its cells; an error in one ends it."""
    import matplotlib

    matplotlib.use("Agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, number = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            cell = cell | {"execution_count": number, "outputs": outputs("".join(cell["source"]), names, number)}
        cells.append(cell)
    return notebook | {"cells": cells}


def outputs(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """What a cell prints, the value of its last line, and its plots."""
    import matplotlib.pyplot as plt

    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(keepends=True)})
    if value is not None:
        shown = {"text/plain": repr(value).splitlines(keepends=True)}
        found.append({"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": shown})
    for figure in map(plt.figure, plt.get_fignums()):
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=80, bbox_inches="tight")
        image = base64.b64encode(drawn.getvalue()).decode()
        found.append({"output_type": "display_data", "metadata": {}, "data": {"image/png": image}})
    plt.close("all")
    return found


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(json.dumps(executed(json.loads(path.read_text())), indent=1, ensure_ascii=False) + "\n")
