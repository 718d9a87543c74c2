"""What is fetched is what was pinned, and a machine without Maven is told so. Fetches nothing."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from jettison.errors import Unsupported
from jettison.lab.bench import maven_jars
from jettison.lab.bench.maven_jars import BROKER, CONNECTOR, DELTA, S3A, Bundle, jars


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that holds one jar, as pinned."""
    folder = tmp_path / "cache" / "jettison" / "jars" / "small"
    folder.mkdir(parents=True)
    (folder / "a-1.jar").write_bytes(b"a")
    pinned = tmp_path / "pinned"
    pinned.write_text(f"{hashlib.sha256(b'a').hexdigest()}  small/a-1.jar\n{'0' * 64}  other/b-1.jar\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(maven_jars, "_CHECKSUMS", pinned)
    return folder


def test_what_is_in_the_cache_is_not_fetched_again(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert jars(Bundle("small", ())) == [cached / "a-1.jar"]


def test_a_jar_that_was_changed_is_refused(cached: Path) -> None:
    (cached / "a-1.jar").write_bytes(b"b")
    with pytest.raises(Unsupported, match=r"a-1\.jar with the checksum"):
        jars(Bundle("small", ()))


def test_without_maven_one_sentence_says_so(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cached / "a-1.jar").unlink()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Unsupported, match="no mvn on PATH"):
        jars(Bundle("small", ()))


@pytest.mark.parametrize("bundle", [BROKER, CONNECTOR, S3A, DELTA])
def test_every_artifact_that_is_asked_for_is_pinned(bundle: Bundle) -> None:
    pinned = maven_jars.pinned_jars(bundle)
    assert {"-".join(artifact.split(":")[1:]) + ".jar" for artifact in bundle.artifacts} <= set(pinned)
