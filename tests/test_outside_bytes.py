"""Whatever bytes lie beside a checkpoint or come from somebody else: a documented error or a loss that is told, soon."""

from __future__ import annotations

import json
import math
import tempfile
import time
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jettison.core.documents import encode as encoded
from jettison.core.plan import DropPlan
from jettison.core.stats import PointStats, Stats
from jettison.core.storage import Folder
from jettison.errors import DamagedPlan, InvalidInput, JettisonError
from jettison.page.view import Query
from jettison.pipeline.document import load
from jettison.policies import UniformDrop
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.policies.window.window_marks import WindowMarks
from jettison.runtime import orders, owner, plan_file, restart
from jettison.runtime.ledger import Ledger
from jettison.runtime.orders import DamagedOrders
from jettison.runtime.pilot import Pilot
from jettison.runtime.plan_file import decode, encode
from jettison.runtime.schedule import Schedule
from jettison.settle import settled_record
from jettison.settle.history import history
from page_ledgers import query
from pilot_parts import SETTINGS, FilePublisher, counted
from pipeline.test_document import DOCUMENT

TRIED = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1, 0, 2**31, 2**53, 2**63 - 1, 2**63, 10**30, -1e300, 1e300, 0.5, "", "x", "é", [], {}, [[]]]),
    st.text(max_size=5),
    st.integers(),
)


@st.composite
def otherwise(draw: Any, content: bytes) -> bytes:
    """The content with something wrong in it: bytes, the end, a stretch twice or away, or a value of a line of JSON."""
    way = draw(st.sampled_from(["value", "value", "value", "bytes", "cut", "twice", "other"]))
    place = draw(st.integers(0, max(len(content) - 1, 0)))
    if way == "other":
        return draw(st.binary(max_size=200))
    if way == "cut":
        return content[:place]
    if way == "twice":
        return content[:place] + content[place // 2 :]
    if way == "bytes":
        return content[:place] + draw(st.binary(min_size=1, max_size=4)) + content[place + 1 :]
    lines = content.splitlines()
    number = draw(st.integers(0, max(len(lines) - 1, 0)))
    try:
        document = json.loads(lines[number])
    except (ValueError, IndexError):
        return content[:place]
    lines[number] = json.dumps(draw(changed(document))).encode()
    return b"\n".join(lines) + b"\n"


def places(document: Any) -> list[tuple[Any, ...]]:
    """The way to every value in a document, its own first."""
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document if isinstance(document, list) else ())
    )
    return [(), *[(name, *rest) for name, part in inner for rest in places(part)]]


@st.composite
def changed(draw: Any, document: Any) -> Any:
    """A document with another value in one place, or without it."""
    *way, last = draw(st.sampled_from([place for place in places(document) if place] or [("x",)]))
    document = json.loads(json.dumps(document))
    if not isinstance(document, dict | list):
        return draw(ODD)
    inner = document
    for name in way:
        inner = inner[name]
    if draw(st.integers(0, 4)):
        inner[last] = draw(ODD)
    else:
        del inner[last]
    return document


def within_bounds(action: Callable[[], Any], *, seconds: float = 2.0, bytes_: float = 100e6) -> None:
    """Run it; it may raise what it documents, but take neither long nor much memory."""
    tracemalloc.start()
    started = time.process_time()
    try:
        action()
    finally:
        took, most = time.process_time() - started, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert took < seconds
    assert most < bytes_


PLAN = encode(
    Schedule.of(DropPlan(3, {"rows": RandomDrop(0.5)}, "why")).followed_by(
        DropPlan(4, {"rows": WindowMarks((7,), ("kd",), ((None, 90),))}), 1000
    ),
    valid_until_us=10**15,
    size=1024,
)


@TRIED
@given(data=st.data())
def test_a_plan_file_with_a_fitting_checksum_is_a_schedule_or_damaged(data: st.DataObject) -> None:
    body = data.draw(otherwise(PLAN[plan_file.BODY_START :].rstrip()))
    checked = PLAN[plan_file.CHECKED_START : plan_file.BODY_START] + body
    try:
        found = decode(b"%010d " % zlib.crc32(checked) + checked)
    except DamagedPlan:
        return
    for entry in found.entries:
        assert DropPlan.from_json(entry.plan.to_json()) == entry.plan


def a_ledger(folder: Path) -> Path:
    """One of all usual records, and the file that it is."""
    query(folder)
    (path,) = (folder / "jettison" / "ledger").glob("*.jsonl")
    ledger = Ledger(Folder(folder) / "jettison" / "ledger", run=path.stem)
    ledger.plan(5.0, DropPlan(9, {"rides": WindowMarks((7,), ("kd",), ((None, 90),))}))
    ledger.fault(6.0, "plan", "something")
    for summary in path.parent.glob("*.json"):
        summary.unlink()
    return path


@pytest.fixture(scope="module")
def ledger_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return b"".join(a_ledger(tmp_path_factory.mktemp("ledger")).read_bytes().splitlines(keepends=True)[-12:])


@pytest.mark.long
@TRIED
@given(data=st.data())
def test_whatever_a_ledger_says_it_can_be_read_and_looked_at(data: st.DataObject, ledger_bytes: bytes) -> None:
    content = data.draw(otherwise(ledger_bytes))
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(name) / "jettison" / "ledger"
        folder.replace("run-000001.jsonl", content)

        def look() -> None:
            ledger = Ledger(folder)
            assert ledger.totals().seen >= 0
            ledger.totals_by_point()
            ledger.gaps()
            ledger.decisions()
            ledger.latest_plans()
            history(ledger.records())
            Query(name).view()
            Ledger.open(folder).totals()

        within_bounds(look)


@pytest.mark.parametrize("batch", [2**40, 2**63 - 1])
def test_one_wrong_number_does_not_make_gaps_without_end(batch: int, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, run="run-000001")
    for number in (0, 2, batch):
        ledger.batch(Stats(number, 1.0, 1.0, {"rows": PointStats(1, 1)}, plan_version=1), latency_s=None)

    def look() -> None:
        assert ledger.gaps()[:2] == [1, 3]

    within_bounds(look)


@pytest.mark.long
@TRIED
@given(data=st.data())
def test_whatever_a_summary_says_the_ledger_can_be_read(data: st.DataObject, ledger_bytes: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(name)
        folder.replace("run-000001.jsonl", ledger_bytes)
        Ledger.open(folder)
        summary = folder.read("run-000001.summary.json")
        assert summary is not None
        folder.replace("run-000001.summary.json", data.draw(otherwise(summary)))

        def look() -> None:
            ledger = Ledger(folder)
            ledger.totals(), ledger.totals_by_point(), ledger.gaps(), ledger.latest_plans()
            Ledger.open(folder)

        within_bounds(look)


@pytest.fixture(scope="module")
def beside_a_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a run leaves."""
    folder = Folder(tmp_path_factory.mktemp("run")) / "jettison"
    pilot = Pilot(("rows",), UniformDrop(), SETTINGS, FilePublisher(folder), folder, Ledger.open(folder / "ledger"))
    pilot.start()
    for number in range(4):
        pilot.batch(counted(number, 10_000, 10_000, version=pilot.plan.version))
    pilot.close()
    found = {name: folder.read(name) or b"" for name in ("plan", "controller.json")}
    return found | {"ledger/run-000001.jsonl": (folder / "ledger").read("run-000001.jsonl") or b""}


@pytest.mark.long
@TRIED
@given(data=st.data())
def test_whatever_a_run_left_the_next_one_starts_and_keeps_its_books(
    data: st.DataObject, beside_a_checkpoint: dict[str, bytes]
) -> None:
    wrong = data.draw(st.sampled_from(sorted(beside_a_checkpoint)))
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(name) / "jettison"
        for path, content in beside_a_checkpoint.items():
            inner, _, file = path.rpartition("/")
            (folder / inner if inner else folder).replace(file, content)
        inner, _, file = wrong.rpartition("/")
        (folder / inner if inner else folder).replace(file, data.draw(otherwise(beside_a_checkpoint[wrong])))
        ledger = Ledger.open(folder / "ledger")
        pilot = Pilot(("rows",), UniformDrop(), SETTINGS, _Channel(folder), folder, ledger)
        pilot.start()
        pilot.batch(counted(77, version=pilot.plan.version))
        pilot.close()
        assert pilot.await_close(10.0)
        assert set(pilot.faults) <= {"plan", "state", "ledger"}, [*Ledger(folder / "ledger").records("fault")]


class _Channel(FilePublisher):
    """A publisher that reads leases as the channel does."""

    def room(self, wanted: int) -> int:
        return wanted

    def lease_ends_us(self) -> int | None:
        content = self.folder.read("plan") or b""
        try:
            decode(content)
        except DamagedPlan:
            return None
        return int(content[plan_file.VALID_UNTIL_US])


SIGN = json.dumps({"run": "c3e5", **owner.place(), "pid": 13188, "beat": 1, "at_s": 1795004913.5}).encode()


@TRIED
@given(data=st.data())
def test_whatever_a_sign_of_life_says_it_holds_a_name_or_nothing(data: st.DataObject, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.replace(owner._FILE, data.draw(otherwise(SIGN)))
    found = owner.sign_of_life(folder)
    assert found is None or isinstance(found.run, str)
    assert found is None or owner._is_dead(found) in (True, False)


@TRIED
@given(data=st.data())
def test_a_record_of_settled_windows_is_one_or_is_refused(data: st.DataObject, tmp_path: Path) -> None:
    home = Folder(tmp_path)
    settled_record.save(home, settled_record.Settled())
    path = next((tmp_path / settled_record.FOLDER).iterdir())
    path.write_bytes(data.draw(otherwise(path.read_bytes())))
    with suppress(InvalidInput):
        settled_record.summary(settled_record.load(home))


@pytest.mark.long
@TRIED
@given(data=st.data(), suffix=st.sampled_from(["yaml", "json"]))
def test_a_pipeline_file_is_one_or_is_refused(data: st.DataObject, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"pipeline.{suffix}"
    path.write_bytes(data.draw(otherwise(json.dumps(DOCUMENT).encode())))
    with suppress(JettisonError):
        load(path)


BY = {"author": "ann", "reason": "audit", "at_s": 12.5}
ORDERS = orders.Orders(
    mark="1f",
    latency=orders.LatencyOrder(**BY, seconds=5.0),
    keep_everything=orders.Order(**BY),
    dry_run=orders.Order(**BY),
    protect=orders.ProtectOrder(**BY, predicates=("tier = 'gold'", "vip")),
)


def sealed(text: str) -> bytes:
    return json.dumps({"crc": zlib.crc32(text.encode()), "orders": text}).encode()


@pytest.mark.long
@TRIED
@given(data=st.data(), checksum_fits=st.booleans())
def test_orders_are_obeyed_or_refused_and_the_query_goes_on(data: st.DataObject, *, checksum_fits: bool) -> None:
    text = encoded(data.draw(st.sampled_from([ORDERS, orders.Orders(latency=ORDERS.latency), orders.Orders()])))
    if checksum_fits:
        content = sealed(data.draw(otherwise(text.encode())).decode(errors="replace"))
    else:
        content = data.draw(otherwise(sealed(text)))
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(name) / "jettison"
        folder.replace(orders.FILE, content)

        def run() -> None:
            with suppress(DamagedOrders):
                list(orders.standing(folder).words())
            ledger = Ledger.open(folder / "ledger")
            pilot = Pilot(("rows",), UniformDrop(), SETTINGS, FilePublisher(folder), folder, ledger)
            pilot.start()
            pilot.batch(counted(0, 10_000, 10_000, version=pilot.plan.version))
            pilot.close()
            assert pilot.await_close(10.0)
            assert set(pilot.faults) <= {"order"}
            assert 0.0 < pilot.latency_bound_s < math.inf

        within_bounds(run)


def test_the_longest_orders_that_can_be_given_can_be_read(tmp_path: Path) -> None:
    words = "\0" * orders.LONGEST_WORDS  # seven bytes each
    by = {"author": words, "reason": words, "at_s": 1795004913.123456}
    predicates = tuple(f"{number:02}{words[2:]}" for number in range(16))
    longest = orders.Orders(
        latency=orders.LatencyOrder(**by, seconds=1.0 / 3.0),
        keep_everything=orders.Order(**by),
        dry_run=orders.Order(**by),
        protect=orders.ProtectOrder(**by, predicates=predicates),
    )
    written = orders.write(Folder(tmp_path), longest)
    assert orders.standing(Folder(tmp_path)) == written
    assert orders.MOST_BYTES / 2 < len(Folder(tmp_path).read(orders.FILE) or b"") < orders.MOST_BYTES


HOSTILE = {
    "deep": b"[" * 500_000,
    "deep and closed": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "long number": b'{"version": ' + b"9" * 1_000_000 + b"}",
    "long text": b'"' + b"x" * 1_000_000 + b'"',
    "many keys": b"{" + b",".join(b'"k%d": 1' % i for i in range(60_000)) + b"}",
    "no text": bytes(range(256)) * 4000,
}


@pytest.mark.long
@pytest.mark.parametrize("kind", HOSTILE)
def test_large_and_hostile_bytes_take_neither_long_nor_much_memory(kind: str, tmp_path: Path) -> None:
    """A megabyte of each where plan, ledger, state, summary, sign of life, orders and pipeline are looked for."""
    content = HOSTILE[kind]
    home = Folder(tmp_path / "checkpoint") / "jettison"
    checked = PLAN[plan_file.CHECKED_START : plan_file.BODY_START] + content
    home.replace("plan", b"%010d " % zlib.crc32(checked) + checked)
    home.replace("controller.json", content)
    home.replace(owner._FILE, content)
    home.replace(orders.FILE, content if kind == "no text" else sealed(content.decode()))
    (home / "ledger").replace("run-000001.jsonl", content + b"\n")
    (home / "ledger").replace("run-000001.summary.json", content)
    (home / "ledger").replace("run.pruned.json", content)
    (tmp_path / "p.json").write_bytes(content)
    (tmp_path / "p.yaml").write_bytes(content)

    def look() -> None:
        faults: list[str] = []
        ledger = Ledger.open(home / "ledger")
        restart.found(_Channel(home), ledger, home, SETTINGS, lambda kind, detail: faults.append(kind))
        assert set(faults) == {"plan", "state", "ledger"}
        assert owner.sign_of_life(home) is None
        assert orders.OrdersFile(home, lambda kind, detail: faults.append(kind)).look() is None
        assert "order" in faults
        Query(str(tmp_path / "checkpoint")).view()
        for name in ("p.json", "p.yaml"):
            with pytest.raises(JettisonError):
                load(tmp_path / name)

    within_bounds(look, seconds=5.0)
