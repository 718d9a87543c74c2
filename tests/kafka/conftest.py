"""A broker and a session with Kafka's connector, for the tests that `make test-kafka` runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jettison.lab.bench.kafka import broker
from jettison.lab.bench.maven_jars import CONNECTOR, jars
from jettison.spark.session import LOCAL


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    with broker() as address:
        yield address


@pytest.fixture(scope="session")
def spark(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # Python workers must find what this interpreter finds, not what the first python3 on PATH does.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("jettison-kafka-tests")
        .config(map=dict(LOCAL))
        # Two state partitions instead of 200: each one is files and tasks in every micro-batch.
        .config("spark.sql.shuffle.partitions", "2")
        # The connector does not come with PySpark.
        .config("spark.jars", ",".join(map(str, jars(CONNECTOR))))
        # Keep metastore and warehouse out of the source tree.
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"
