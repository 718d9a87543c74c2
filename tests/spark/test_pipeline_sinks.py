"""What the outputs of a pipeline file write is never taken for what a query before them wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jettison.core.storage import home
from jettison.pipeline.document import OutputFile
from jettison.spark.pipeline_sinks import batch_sink


class Writer:
    """Stands for rows and for their writer, and remembers what it is told."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}
        self.write = self

    def format(self, name: str) -> Writer:
        return self

    def mode(self, name: str) -> Writer:
        return self.options(mode=name)

    def option(self, name: str, value: str) -> Writer:
        return self.options(**{name: value})

    def options(self, **given: str) -> Writer:
        self.told |= given
        return self

    def save(self, path: str | None) -> None:
        self.told["path"] = str(path)


def written(checkpoint: Path, batch_id: int, name: str = "answers", **output: Any) -> dict[str, str]:
    rows: Any = Writer()
    one = OutputFile(reads="boxes", path="out/", **output)
    batch_sink(one, name, str(checkpoint), where=f"outputs.{name}")(rows, batch_id)
    return rows.told  # type: ignore[no-any-return]


@pytest.mark.parametrize(("format", "told"), [("parquet", "path"), ("json", "path"), ("delta", "txnAppId")])
def test_a_repeated_batch_replaces_itself_and_no_other(tmp_path: Path, format: str, told: str) -> None:
    first = written(tmp_path, 0, format=format)
    assert written(tmp_path, 0, format=format) == first  # as after a restart
    assert written(tmp_path, 1, format=format) != first
    assert written(tmp_path, 0, name="others", format=format)[told] != first[told]
    # The same path, but a new checkpoint: its batches begin at 0 again.
    home(tmp_path).replace("token", b"of the checkpoint that came after it was removed")
    assert written(tmp_path, 0, format=format)[told] != first[told]


def test_a_damaged_token_names_no_other_folder(tmp_path: Path) -> None:
    home(tmp_path).replace("token", b"../../\xff/elsewhere")
    assert written(tmp_path, 3)["path"].startswith("out/batch=3-")
    assert written(tmp_path, 3)["path"].count("/") == 1
