"""A Kafka broker of one node on this machine, for as long as a benchmark or a test needs it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from jettison import extras
from jettison.errors import JettisonError, refuse
from jettison.lab.bench.driver_process import jvm_of
from jettison.lab.bench.maven_jars import BROKER, CONNECTOR, jars

_UP_WITHIN_S = 60.0
# The shell ends the broker when its own input ends: with the context, or with the process that opened it, however it ends.
_GUARDED = '"$@" </dev/null & broker=$!; cat >/dev/null; kill -9 $broker; wait $broker 2>/dev/null'
# A broker that takes little of the machine: it is not what is measured.
_JAVA_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_CLUSTER = "amV0dGlzb25iZW5jaG1hcg"
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
# One node holds everything.
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
# Nothing is kept beyond the broker's life, so nothing needs to reach the disk for sure.
log.retention.ms=-1
auto.create.topics.enable=false
"""


class Broker:
    """A broker that runs, and can be paused and restarted as brokers are.

    Parameters
    ----------
    folder
        Where its data and its log lie.
    """

    def __init__(self, folder: Path) -> None:
        self._classpath = os.pathsep.join(map(str, jars(BROKER)))
        port, controller = _free_ports(2)
        self.address = f"127.0.0.1:{port}"
        self._settings, self._log = folder / "server.properties", folder / "log"
        self._settings.write_text(_SETTINGS.format(port=port, controller=controller, folder=folder))
        with self._log.open("wb") as log:
            format_ = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._settings)]
            subprocess.run(_java(self._classpath, format_), stdout=log, stderr=log, check=True)
        self._start()

    def _start(self) -> None:
        command = ["kafka.Kafka", str(self._settings)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _GUARDED, "broker", *_java(self._classpath, command)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        try:
            _await_up(self.address, self._log)
        except BaseException:
            self.close()
            raise

    def pause(self) -> None:
        """Let it stand still, as a long garbage collection does."""
        os.kill(jvm_of(self._process.pid), signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        os.kill(jvm_of(self._process.pid), signal.SIGCONT)

    def restart(self) -> None:
        """Kill it, and start it again with what it had written."""
        self.close()
        self._start()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@contextmanager
def running_broker() -> Iterator[Broker]:
    """A broker on the loopback address; nothing of it is left afterwards.

    Raises `Unsupported` where Kafka, Spark's connector for it or the client that fills topics is not to be had.
    """
    extras.require("confluent_kafka", where="Kafka")
    jars(CONNECTOR)
    with tempfile.TemporaryDirectory(prefix="jettison-kafka-", ignore_cleanup_errors=True) as folder:
        running = Broker(Path(folder))
        try:
            yield running
        finally:
            running.close()


@contextmanager
def broker() -> Iterator[str]:
    """The `host:port` of a running broker."""
    with running_broker() as running:
        yield running.address


def _java(classpath: str, arguments: Sequence[str]) -> list[str]:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java") or "java"
    return [java, *_JAVA_OPTIONS, "-cp", classpath, *arguments]


def _await_up(address: str, log: Path) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=_UP_WITHIN_S)
    except KafkaException:
        said = log.read_text(errors="replace").strip()[-500:] or "silence"
        refuse(f"a broker within {_UP_WITHIN_S:g} s", said, hint="see that its ports stay free", error=JettisonError)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listened on just now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listening.getsockname()[1] for listening in sockets]
    for listening in sockets:
        listening.close()
    return ports
