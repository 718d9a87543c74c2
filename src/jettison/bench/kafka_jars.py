"""Kafka's broker and Spark's connector for it, fetched once by Maven and checked against checksums that are kept here."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jettison.errors import Unsupported, explain

_CHECKSUMS = Path(__file__).with_name("kafka_jars.sha256")
_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Bundle:
    """Jars that are used together: these artifacts, and all that they need unless `alone`."""

    name: str
    artifacts: tuple[str, ...]
    alone: bool = False


BROKER = Bundle("broker", ("org.apache.kafka:kafka_2.13:4.2.0",))
CONNECTOR = Bundle(
    "connector",
    (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.1",
        "org.apache.commons:commons-pool2:2.12.0",
    ),
    alone=True,  # the rest of what it needs comes with Spark
)


def jars(bundle: Bundle) -> list[Path]:
    """The jars of a bundle, fetched if they are not in the cache yet; every one is what its checksum says.

    Raises `Unsupported` with the reason where they are not to be had.
    """
    folder = _cache() / bundle.name
    expected = _expected(bundle)
    if not all((folder / name).is_file() for name in expected):
        _fetch(bundle, folder)
    for name, checksum in expected.items():
        _check(folder / name, checksum)
    return [folder / name for name in expected]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jettison" / "kafka"


def _expected(bundle: Bundle) -> Mapping[str, str]:
    """Checksum by name of the jar."""
    lines = (line.split() for line in _CHECKSUMS.read_text().splitlines())
    found = {Path(path): checksum for checksum, path in lines}
    return {path.name: checksum for path, checksum in found.items() if path.parent.name == bundle.name}


def _fetch(bundle: Bundle, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise Unsupported(explain("Maven, to fetch Kafka", "no mvn on PATH", hint="install maven"))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        (Path(scratch) / "pom.xml").write_text(_pom(bundle))
        command = [
            maven,
            "-q",
            "-B",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            "-DoutputDirectory=jars",
        ]
        try:
            done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise Unsupported(_not_fetched(f"nothing within {_TIMEOUT_S} s")) from None
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip().splitlines() or [f"exit status {done.returncode}"]
            raise Unsupported(_not_fetched(said[0]))
        shutil.rmtree(folder, ignore_errors=True)
        (Path(scratch) / "jars").rename(folder)


def _not_fetched(said: str) -> str:
    return explain("Kafka's jars from Maven", said, hint="see that mvn can reach a repository from here")


def _pom(bundle: Bundle) -> str:
    alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    wanted = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>".format(
            *artifact.split(":"), alone if bundle.alone else ""
        )
        for artifact in bundle.artifacts
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>jettison</groupId><artifactId>kafka</artifactId>"
        f"<version>1</version><packaging>pom</packaging><dependencies>{wanted}</dependencies></project>\n"
    )


def _check(jar: Path, checksum: str) -> None:
    found = hashlib.sha256(jar.read_bytes()).hexdigest() if jar.is_file() else "no such file"
    if found != checksum:
        raise Unsupported(explain(f"{jar.name} with the checksum {checksum}", found, hint=f"remove {jar.parent}"))
