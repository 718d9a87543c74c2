"""A part of exact answers appears below the folder, and can be taken back, on every kind of filesystem."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from core.test_storage import ObjectStore
from jettison.core import storage
from jettison.errors import Unsupported
from jettison.settle.answer_parts import AnswerParts

FILES = {"part-0.parquet": b"some", "part-1.parquet": b"others", "_SUCCESS": b""}
SHOWN = {f"settlement=1/{name}" for name in FILES}
HIDDEN = {f"_unproven/{name}" for name in SHOWN}


class MovingStore(ObjectStore):
    """An object store whose objects can be moved and removed, one by one; after some moves it may fail."""

    moves_left = 100

    def move(self, source: str, target: str) -> None:
        if not self.moves_left:
            raise OSError("the driver dies here")
        self.moves_left -= 1
        self.files[target] = self.files[source]
        self.delete_file(source)

    def delete_file(self, path: str) -> None:
        if path not in self.files:
            raise FileNotFoundError(path)
        del self.files[path]


class Place:
    """A folder for answers, in which Spark has written a part that is not proven yet."""

    def __init__(self, to: str, write: Callable[[str, bytes], Any], names: Callable[[], set[str]]) -> None:
        self.parts, self.names = AnswerParts(to), names
        for name, content in FILES.items():
            write(f"_unproven/settlement=1/{name}", content)


def in_folders(to: str, root: Path) -> Place:
    def write(name: str, content: bytes) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)

    return Place(to, write, lambda: {str(each.relative_to(root)) for each in root.rglob("*") if each.is_file()})


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MovingStore:
    handler = MovingStore()
    filesystem = fs.PyFileSystem(handler)
    monkeypatch.setattr(storage, "_OBJECT_STORES", (filesystem.type_name,))
    monkeypatch.setattr(storage, "_remote", lambda uri, scheme: (filesystem, uri.partition("://")[2]))
    return handler


def in_store(store: MovingStore) -> Place:
    def names() -> set[str]:
        return {path.removeprefix("bucket/exact/") for path in store.files}

    return Place(
        "s3://bucket/exact", lambda name, content: store.files.update({f"bucket/exact/{name}": content}), names
    )


@pytest.fixture(params=["local", "remote folders", "object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    if request.param == "object store":
        return in_store(request.getfixturevalue("store"))
    if request.param == "remote folders":  # as on HDFS: real ones, behind a URI
        filesystem = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
        monkeypatch.setattr(storage, "_remote", lambda uri, scheme: (filesystem, uri.partition("://host/")[2]))
        return in_folders("hdfs://host/exact", tmp_path / "exact")
    return in_folders(str(tmp_path / "exact"), tmp_path / "exact")


def test_a_part_is_where_readers_look_once_it_is_shown(place: Place) -> None:
    assert place.names() == HIDDEN
    place.parts.show(1)
    assert place.names() == SHOWN


def test_what_was_shown_and_is_not_on_record_can_be_taken_back(place: Place) -> None:
    """The driver may die in between; the part is written once more, under the next number."""
    place.parts.show(1)
    place.parts.remove(1)
    place.parts.remove(1)
    assert place.names() == set()


@pytest.mark.parametrize("moves", range(len(FILES)))
def test_a_part_of_which_some_files_are_shown_can_be_taken_back(store: MovingStore, moves: int) -> None:
    place, store.moves_left = in_store(store), moves
    with pytest.raises(OSError, match="dies"):
        place.parts.show(1)
    assert len(place.names() & SHOWN) == moves
    place.parts.remove(1)
    assert place.names() == set()


def test_what_cannot_be_reached_is_refused_before_anything_is_written() -> None:
    with pytest.raises(Unsupported, match=r"got 'gopher://host/exact'") as caught:
        AnswerParts("gopher://host/exact")
    assert "checkpoint" not in str(caught.value)
