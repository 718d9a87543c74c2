"""An S3 store on the loopback address and a session that reaches it, for the tests that `make test-store` runs."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs
from pyspark.sql import SparkSession

from jettison.lab.bench.kafka import _GUARDED, _free_ports
from jettison.lab.bench.maven_jars import S3A, jars
from jettison.spark.session import LOCAL

BUCKET = "jettison"
_KEY, _SECRET = "nobody", "no-secret"
_UP_WITHIN_S = 60.0


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the store answers: this process finds it, and no credentials but these."""
    (port,) = _free_ports(1)
    command = [os.environ["JETTISON_TEST_STORE"], "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    guarded = ["/bin/sh", "-c", _GUARDED, "store", *command]  # ends with this process, however that ends
    with (tmp_path_factory.mktemp("store") / "log").open("wb") as log:
        server = subprocess.Popen(guarded, stdin=subprocess.PIPE, stdout=log, stderr=log)
    settings = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": _KEY,
        "AWS_SECRET_ACCESS_KEY": _SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        try:
            _await_up(port)
            store, bucket = fs.FileSystem.from_uri(f"s3://{BUCKET}?allow_bucket_creation=true")
            store.create_dir(bucket)
            yield settings["AWS_ENDPOINT_URL"]
        finally:
            assert server.stdin is not None
            server.stdin.close()
            server.wait()


def _await_up(port: int) -> None:
    deadline = time.monotonic() + _UP_WITHIN_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            assert time.monotonic() < deadline, f"a store within {_UP_WITHIN_S:g} s"
            time.sleep(0.1)


@pytest.fixture(scope="session")
def spark(endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    s3a = {
        "endpoint": endpoint,
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "access.key": _KEY,
        "secret.key": _SECRET,
    }
    session = (
        SparkSession.builder.master("local[2]")
        .appName("jettison-store-tests")
        .config(map=LOCAL | {f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()})
        # One state partition instead of 200: each one is objects in every micro-batch.
        .config("spark.sql.shuffle.partitions", "1")
        # The client does not come with PySpark.
        .config("spark.jars", ",".join(map(str, jars(S3A))))
        # Keep metastore and warehouse out of the source tree.
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def checkpoint(endpoint: str, tmp_path: Path) -> str:
    """One for each test, in a folder whose name has to be quoted in a URI."""
    return f"s3a://{BUCKET}/two words/50%/{tmp_path.name}"
