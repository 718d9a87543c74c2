"""Kafka's broker, and what Spark needs for Kafka, S3 and Delta: fetched once by Maven, checked against kept checksums."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from jettison.errors import Unsupported, refuse

_CHECKSUMS = Path(__file__).with_name("maven_jars.sha256")
_TIMEOUT_S = 600
_NEEDED = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
_WITHOUT = "<exclusion><groupId>{}</groupId><artifactId>{}</artifactId></exclusion>"
_POM = (
    "<project><modelVersion>4.0.0</modelVersion><groupId>jettison</groupId><artifactId>jars</artifactId>"
    "<version>1</version><packaging>pom</packaging><dependencies>{}</dependencies></project>\n"
)


@dataclass(frozen=True, slots=True)
class Bundle:
    """Jars that are used together: these artifacts and all that they need, `without` what is there already."""

    name: str
    artifacts: tuple[str, ...]
    without: tuple[str, ...] = ()


BROKER = Bundle("broker", ("org.apache.kafka:kafka_2.13:4.2.0",))
CONNECTOR = Bundle(
    "connector",
    (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.1",
        "org.apache.commons:commons-pool2:2.12.0",
    ),
    without=("*:*",),  # the rest of what it needs comes with Spark
)
# Of the SDK what a checkpoint needs: the bundle that hadoop-aws asks for holds hundreds of services.
S3A = Bundle(
    "s3a",
    (
        "org.apache.hadoop:hadoop-aws:3.5.0",
        "software.amazon.awssdk:s3:2.35.4",
        "software.amazon.awssdk:s3-transfer-manager:2.35.4",
        "software.amazon.awssdk:sts:2.35.4",
        "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
    ),
    without=(
        "software.amazon.awssdk:bundle",
        # These come with Spark.
        *(f"{group}:*" for group in ("io.netty", "org.apache.httpcomponents", "commons-codec", "commons-logging")),
        "org.slf4j:*",
    ),
)

_DELTA = ("delta-spark_4.2_2.13", "delta-storage", "delta-kernel-api", "delta-kernel-defaults")
# For Spark 4.2: there is none for 4.3 yet.
DELTA = Bundle("delta", tuple(f"io.delta:{name}:4.4.0" for name in _DELTA), without=("*:*",))


def jars(bundle: Bundle) -> list[Path]:
    """The jars of a bundle, fetched if they are not in the cache yet; every one is what its checksum says.

    Raises `Unsupported` with the reason where they are not to be had.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jettison" / "jars" / bundle.name
    pinned = {folder / name: checksum for name, checksum in pinned_jars(bundle).items()}
    if not all(jar.is_file() for jar in pinned):
        _fetch(bundle, folder)
    for jar, checksum in pinned.items():
        found = hashlib.sha256(jar.read_bytes()).hexdigest() if jar.is_file() else "no such file"
        if found != checksum:
            refuse(f"{jar.name} with the checksum {checksum}", found, hint=f"remove {folder}", error=Unsupported)
    return list(pinned)


def pinned_jars(bundle: Bundle) -> dict[str, str]:
    """Checksum by name of the jar."""
    lines = (line.split() for line in _CHECKSUMS.read_text().splitlines())
    return {Path(path).name: checksum for checksum, path in lines if path.startswith(f"{bundle.name}/")}


def _fetch(bundle: Bundle, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        refuse(f"Maven, to fetch the jars of {bundle.name}", "no mvn on PATH", hint="install maven", error=Unsupported)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        # What is left out is not even looked for: some of it is in no repository.
        without = "".join(_WITHOUT.format(*pattern.split(":")) for pattern in bundle.without)
        without = f"<exclusions>{without}</exclusions>" if without else ""
        needed = "".join(_NEEDED.format(*artifact.split(":"), without) for artifact in bundle.artifacts)
        (Path(scratch) / "pom.xml").write_text(_POM.format(needed))
        options = ["-DincludeScope=runtime", "-DoutputDirectory=jars"]
        command = [maven, "-q", "-B", "dependency:copy-dependencies", *options]
        try:
            done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, timeout=_TIMEOUT_S)
            failed = done.returncode != 0
            said = (done.stdout + done.stderr).strip().partition("\n")[0] or f"exit status {done.returncode}"
        except subprocess.TimeoutExpired:
            failed, said = True, f"nothing within {_TIMEOUT_S} s"
        if failed:
            refuse(
                f"the jars of {bundle.name} from Maven",
                said,
                hint="see that mvn can reach a repository",
                error=Unsupported,
            )
        shutil.rmtree(folder, ignore_errors=True)
        (Path(scratch) / "jars").rename(folder)
