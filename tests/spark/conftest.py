"""One Spark session for all tests of a process that need one, and small streams to guard."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

from jettison.runtime.schedule import NEVER_US
from jettison.spark import doubts
from jettison.spark.session import LOCAL
from jettison.spark.unstarted import UnstartedWatch
from window_streams import Seconds

collect_ignore_glob = ["*driver*.py"]
"""Programs that tests start in processes of their own, with this folder on their path."""
_numbers = itertools.count()
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    running = tuple(map(int, pyspark.__version__.split(".")[:2]))
    for item in items:
        if any(mark.args > running for mark in item.iter_markers("since")):
            item.add_marker(pytest.mark.skip(reason=f"Spark {pyspark.__version__} cannot; see test_versions.py"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # Python workers must find what this interpreter finds, not what the first python3 on PATH does.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("jettison-tests")
        .config(map=dict(LOCAL))
        # Two state partitions instead of 200: each one is files and tasks in every micro-batch.
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "true")
        # Room for what the web interface remembers of hundreds of queries, and few collections from the beginning on.
        .config("spark.driver.memory", "2g")
        .config("spark.driver.extraJavaOptions", "-Xms1g")
        # Keep metastore and warehouse out of the source tree.
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        # Plans are described for the web interface in every batch, and nobody reads it.
        .config("spark.sql.ui.explainMode", "simple")
        # Each call that makes a column would tell the JVM, in several calls, from which line of Python it comes.
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")
        # Idle queries report after 1 s instead of 10, so that tests of a source that stops need not wait.
        .config("spark.sql.streaming.noDataProgressEventInterval", "1000")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Queries run without compiled code: for few rows that takes longer, and it changes no bit."""
    for name, value in _INTERPRETED.items():
        spark.conf.set(name, value)
    yield
    for name in _INTERPRETED:
        spark.conf.unset(name)


@pytest.fixture
def one_partition(spark: SparkSession) -> Iterator[None]:
    """State in one partition: for tests of many small batches, each of which has tasks and files for every partition."""
    usual = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", usual)


@pytest.fixture(autouse=True)
def repeatable_drops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each checkpoint of a test draws a token of its own, the same in every run: chance decides once, not each time."""
    numbers = itertools.count()

    def token() -> SimpleNamespace:
        return SimpleNamespace(hex=f"{request.node.name} {next(numbers)}".encode().hex())

    monkeypatch.setattr("jettison.spark.query_token.uuid4", token)


@pytest.fixture(autouse=True)
def own_doubts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins like an application of its own, in which no guard has dropped any row."""
    monkeypatch.setattr(doubts, "_VIEW", f"jettison_doubts_{next(_numbers)}")
    monkeypatch.setattr(doubts, "_running", {})
    monkeypatch.setattr(doubts, "_ended", {})


@pytest.fixture(scope="session", autouse=True)
def watches() -> Iterator[list[tuple[UnstartedWatch, SparkSession]]]:
    """All that have begun: those of shedders that are never started nor closed would listen to every query after them."""
    begun: list[tuple[UnstartedWatch, SparkSession]] = []
    begin = UnstartedWatch.begin

    def recorded(watch: UnstartedWatch, spark: SparkSession, plan_metric: str) -> None:
        begin(watch, spark, plan_metric)
        begun.append((watch, spark))

    UnstartedWatch.begin = recorded  # type: ignore[method-assign]
    yield begun
    UnstartedWatch.begin = begin  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def no_listener_left(watches: list[tuple[UnstartedWatch, SparkSession]]) -> Iterator[None]:
    """No test pays for shedders of earlier ones: Spark hands each event to a listener in a hundred calls to Python."""
    yield
    while watches:
        watch, spark = watches.pop()
        watch.end(spark)


@pytest.fixture
def vouched_for(spark: SparkSession, own_doubts: None) -> None:
    """A guard has run in this application and has dropped nothing: rows that weigh 1 are all that there were."""
    doubts.ended(spark, SimpleNamespace(uri="nowhere"), NEVER_US)  # type: ignore[arg-type]


class Source:
    """A stream of JSON rows fed file by file: each `land` is one file and, with one file a trigger, one batch."""

    SCHEMA = "id long, key string, value double, vip boolean, at timestamp"

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self.folder = folder
        self._files = 0
        folder.mkdir(parents=True, exist_ok=True)

    def land(self, rows: list[dict[str, object]]) -> None:
        temporary = self.folder / f".{self._files:05d}"
        temporary.write_text("".join(json.dumps(row) + "\n" for row in rows))
        temporary.rename(self.folder / f"{self._files:05d}.json")
        self._files += 1

    def stream(self, **options: object) -> DataFrame:
        reader = self._spark.readStream.schema(self.SCHEMA).option("maxFilesPerTrigger", 1)
        for name, value in options.items():
            reader = reader.option(name, str(value))
        return reader.json(str(self.folder))


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Source:
    return Source(spark, tmp_path / "in")


@pytest.fixture
def seconds(spark: SparkSession, tmp_path: Path) -> Seconds:
    return Seconds(spark, tmp_path / "in")


@pytest.fixture
def numbered() -> Callable[[int, int], list[dict[str, object]]]:
    """Rows with sequential ids."""

    def rows(start: int, stop: int) -> list[dict[str, object]]:
        return [
            {"id": i, "key": f"k{i % 7}", "value": float(i % 100), "vip": i % 50 == 0, "at": "2026-01-01T00:00:00Z"}
            for i in range(start, stop)
        ]

    return rows
