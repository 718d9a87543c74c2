"""What batches took is measured where that can be done."""

from __future__ import annotations

from pathlib import Path

import pytest

from jettison.core.storage import Folder
from jettison.core.taken import SourceStretch
from jettison.settle.history import Span
from jettison.settle.stretch import Stretches


def test_bytes_of_a_topic_that_does_not_answer_are_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are only told: a run must not fail for them."""

    def timed_out(*_: object) -> None:
        raise RuntimeError("org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment")

    monkeypatch.setattr(Stretches, "_frame", timed_out)
    stretch = SourceStretch(rows=5, start={"rides": {"0": 0}}, end={"rides": {"0": 5}})
    assert Stretches(None, Folder(tmp_path), [lambda read: read]).bytes_of([Span(0, 0, True, (stretch,))]) is None  # type: ignore[arg-type]
