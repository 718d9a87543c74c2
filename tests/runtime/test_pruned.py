"""What batches took stays known after their records are gone: nothing of it is missing, and no batch is less in doubt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.core.documents import plain
from jettison.core.stats import PointStats, Stats
from jettison.core.storage import Folder
from jettison.core.taken import SourceStretch, Taken
from jettison.runtime import pruned
from jettison.runtime.ledger import Ledger
from jettison.runtime.pruned import PrunedRecords
from jettison.settle.history import history


@dataclass(frozen=True)
class Batch:
    rows: int
    shed: bool
    times: tuple[int, int] | None
    recorded: bool


BATCHES = st.lists(
    st.builds(
        Batch,
        rows=st.integers(0, 3),
        shed=st.booleans(),
        times=st.none() | st.tuples(st.integers(0, 50), st.integers(50, 99)),
        recorded=st.integers(0, 9).map(bool),
    ),
    min_size=1,
    max_size=40,
)


def records(batches: list[Batch]) -> list[dict[str, Any]]:
    found = list[dict[str, Any]]()
    for number, batch in enumerate(batches):
        oldest, newest = batch.times if batch.times and batch.rows else (None, None)
        source = SourceStretch(rows=batch.rows, start=number or None, end=number + 1)
        taken = Taken(sources=(source,), oldest_us=oldest, newest_us=newest, watermark_us=number)
        point = {"seen": batch.rows, "kept": 0, "dropped": int(batch.shed), "exact": True}
        if batch.recorded or number == len(batches) - 1:
            found.append({"record": "batch", "batch_id": number, "points": {"rows": point}, "taken": plain(taken)})
    return found


@pytest.mark.parametrize("most", [2, 5, 1000])
@given(batches=BATCHES, gone=st.integers(0, 40), at_once=st.integers(1, 9))
def test_what_is_gone_is_known_in_short(most: int, batches: list[Batch], gone: int, at_once: int) -> None:
    every, known = records(batches), PrunedRecords()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pruned, "MOST_SPANS", most)
        for place in range(0, min(gone, len(every)), at_once):
            known.take(every[place : min(place + at_once, gone)])
    whole, short = history(every), history(every[gone:], [known])
    assert short.last == whole.last
    assert short.watermark_us == whole.watermark_us or not every[gone:]
    assert sum(span.rows for span in short.spans) == sum(span.rows for span in whole.spans)
    assert [(a.last + 1, a.sources[0].end) for a in short.spans][:-1] == [
        (b.first, b.sources[0].start) for b in short.spans[1:]
    ]
    for span in whole.spans:
        (now,) = [each for each in short.spans if each.first <= span.first and span.last <= each.last]
        assert now.shed or not span.shed
        assert now.counted or not span.counted
        assert (now.watermark_us or 0) <= (span.watermark_us or 0)
        for time in (span.oldest_us, span.newest_us):
            assert time is None or now.shed or now.may_hold(time, time)
        assert now.shed or not span.rows or span.oldest_us is not None or now.may_hold(-1, -1)


def test_a_ledger_knows_what_batches_took_after_their_files_are_gone(tmp_path) -> None:
    folder = Folder(tmp_path)
    ledger = Ledger.open(folder, segment_bytes=2000, keep_bytes=4000)
    ledger.start(0.0, policy="UniformDrop", dry_run=False, session={"spark.sql.session.timeZone": "Asia/Tokyo"})
    for number in range(100):
        source = SourceStretch(rows=10, start={"logOffset": number - 1} if number else None, end={"logOffset": number})
        stats = Stats(number, 1e9 + number, 0.5, {"rides": PointStats(10, 4 if number == 7 else 10)}, plan_version=1)
        ledger.batch(stats, latency_s=None, taken=Taken(sources=(source,), oldest_us=number, newest_us=number))
    left = list(ledger.records("batch"))
    assert left[0]["batch_id"] > 50
    known = history(ledger.records(), ledger.pruned())
    assert [span.first for span in known.spans] == list(range(100))
    assert [span.first for span in known.spans if span.shed] == [7]
    assert (known.policy, known.session) == ("UniformDrop", {"spark.sql.session.timeZone": "Asia/Tokyo"})


def test_what_a_companion_dropped_stays_in_doubt(tmp_path) -> None:
    folder = Folder(tmp_path)
    function = Ledger.open(folder, writer="function", segment_bytes=300, keep_bytes=300)
    for number in range(20):
        function.counted("function", 1.0, number, "score", 10, 4 if number == 3 else 10)
    assert 3 not in [record["batch_id"] for record in function.records("function")]
    taken = Taken(sources=(SourceStretch(rows=1, end=1),))
    ledger = Ledger.open(folder)
    for number in (2, 3):
        ledger.batch(Stats(number, 1e9, 0.5, {"rides": PointStats(1, 1)}), latency_s=None, taken=taken)
    known = history(Ledger(folder).records(), Ledger(folder).pruned())
    assert {span.first: span.shed for span in known.spans if span.counted} == {2: False, 3: True}
