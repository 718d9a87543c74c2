"""A folder replaces atomically, appends whole records, and says what it cannot reach."""

from __future__ import annotations

import io
import os
import threading

import pyarrow as pa
import pytest
from pyarrow import fs

from jettison.core import storage
from jettison.core.storage import Folder, newest_batch_us
from jettison.errors import Unsupported


class Put(io.BytesIO):
    """An upload: the object appears, whole, when it is closed."""

    def __init__(self, files, path):
        super().__init__()
        self._files, self._path = files, path

    def close(self):
        if not self.closed:
            self._files[self._path] = self.getvalue()
        super().close()


class ObjectStore(fs.FileSystemHandler):
    """The part of an object store that matters here: no appending, renaming is a copy, and times are whole seconds."""

    def __init__(self):
        self.files: dict[str, bytes] = {}

    def get_type_name(self):
        return "store"

    def normalize_path(self, path):
        return path

    def create_dir(self, path, recursive):
        raise AssertionError("an object store has no folders: a request for each would be wasted")

    def open_append_stream(self, path, metadata):
        raise NotImplementedError("objects cannot be appended to")

    def open_output_stream(self, path, metadata):
        return pa.PythonFile(Put(self.files, path), mode="w")

    def open_input_stream(self, path):
        if path not in self.files:
            raise FileNotFoundError(path)
        return pa.BufferReader(self.files[path])

    def get_file_info_selector(self, selector):
        return [
            fs.FileInfo(path, fs.FileType.File, mtime_ns=1_700_000_000_000_000_000)
            for path in sorted(self.files)
            if path.startswith(selector.base_dir + "/")
        ]

    def move(self, source, target):
        raise AssertionError("an object store must not be asked to rename: that copies, and is not atomic")

    copy_file = delete_dir = delete_dir_contents = delete_file = delete_root_dir_contents = get_file_info = move
    open_input_file = open_input_stream


@pytest.fixture
def object_store(monkeypatch):
    handler = ObjectStore()
    filesystem = fs.PyFileSystem(handler)
    monkeypatch.setattr(storage, "_OBJECT_STORES", (filesystem.type_name,))
    monkeypatch.setattr(storage, "_remote", lambda uri, scheme: (filesystem, "bucket/query"))
    return handler


def test_what_is_not_there_reads_as_none_and_lists_as_nothing(tmp_path):
    folder = Folder(tmp_path / "nowhere")
    assert folder.read("plan") is None
    assert folder.names() == []
    assert not (tmp_path / "nowhere").exists(), "reading must not create anything"


def test_replace_makes_the_folder_and_leaves_nothing_else_behind(tmp_path):
    folder = Folder(tmp_path) / "jettison" / "deep"
    folder.replace("plan", b"old and longer")
    folder.replace("plan", b"new")
    assert folder.read("plan") == b"new"
    assert os.listdir(tmp_path / "jettison" / "deep") == ["plan"]


def test_a_failed_replace_leaves_the_old_content(tmp_path, monkeypatch):
    folder = Folder(tmp_path)
    folder.replace("plan", b"old")
    monkeypatch.setattr(Folder, "_write", lambda self, path, content: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        folder.replace("plan", b"new")
    assert folder.read("plan") == b"old"


def test_a_concurrent_reader_never_sees_a_missing_or_partial_file(tmp_path):
    folder = Folder(tmp_path)
    contents = [bytes([letter]) * 300_000 for letter in b"ab"]
    folder.replace("plan", contents[0])
    seen, strange, done = set(), [], threading.Event()

    def read():
        while not done.is_set() or len(seen) < 2:
            content = folder.read("plan")
            if content in contents:
                seen.add(content[:1])
            else:
                strange.append(None if content is None else len(content))
                return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    for turn in range(300):
        folder.replace("plan", contents[turn % 2])
        if strange:
            break
    # One more of each, in case the reader was starved: it ends once it has seen both.
    done.set()
    for turn in range(2000):
        if not reader.is_alive():
            break
        folder.replace("plan", contents[turn % 2])
    reader.join(timeout=120)
    assert not strange
    assert seen == {b"a", b"b"}


def test_appended_records_follow_each_other(tmp_path):
    folder = Folder(tmp_path / "ledger")
    folder.append("run.jsonl", b"one\n")
    folder.append("run.jsonl", b"two\n")
    assert folder.read("run.jsonl") == b"one\ntwo\n"


def test_names_are_files_only_oldest_first(tmp_path):
    folder = Folder(tmp_path)
    for age, name in enumerate(["first", "a-second", "third"]):
        folder.replace(name, b"")
        os.utime(tmp_path / name, ns=(0, 10**18 + age))
    (tmp_path / "folder").mkdir()
    assert folder.names() == ["first", "a-second", "third"]


@pytest.mark.parametrize("spelling", ["{}", "file://{}", "file:{}"])
def test_paths_and_file_uris_mean_the_same_place(tmp_path, spelling):
    Folder(spelling.format(tmp_path)).replace("plan", b"x")
    assert (tmp_path / "plan").read_bytes() == b"x"


def test_a_relative_path_is_taken_from_the_working_directory_when_it_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Folder("checkpoint")
    monkeypatch.chdir("/")
    folder.replace("plan", b"x")
    assert (tmp_path / "checkpoint" / "plan").read_bytes() == b"x"
    assert folder.uri == str(tmp_path / "checkpoint")


def test_a_child_knows_its_address(tmp_path):
    child = Folder(tmp_path) / "jettison"
    assert child.uri == f"{tmp_path}/jettison"
    assert repr(child) == f"Folder({str(tmp_path) + '/jettison'!r})"
    (tmp_path / "beside").write_bytes(b"")
    assert (child.parent.uri, child.parent.names()) == (str(tmp_path), ["beside"])


def test_a_path_with_a_blank_works(tmp_path):
    folder = Folder(tmp_path / "two words")
    folder.replace("plan", b"x")
    assert (tmp_path / "two words" / "plan").read_bytes() == b"x"


def test_an_unknown_filesystem_is_refused_with_a_hint():
    with pytest.raises(Unsupported, match=r"got 'gopher://host/x'.*Hint: use a local path"):
        Folder("gopher://host/x")


def test_on_an_object_store_replace_is_one_put(object_store):
    folder = Folder("store://bucket/query")
    folder.replace("plan", b"old")
    folder.replace("plan", b"new")
    assert object_store.files == {"bucket/query/plan": b"new"}
    assert folder.read("plan") == b"new"
    assert folder.read("missing") is None


def test_a_path_on_s3_means_what_it_says_and_small_files_are_one_put(monkeypatch):
    for name, value in {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    folder = Folder("s3a://bucket/two words/50%/?") / "jettison"
    assert folder.uri == "s3a://bucket/two words/50%/?/jettison"
    assert folder.located[1] == "bucket/two words/50%/?/jettison"
    assert folder.located[0].type_name == "s3"
    assert not folder.keeps_readers


def test_where_nothing_can_be_appended_each_record_is_a_file_in_the_order_of_writing(object_store):
    folder = Folder("store://bucket/query")
    for number in range(20):
        folder.append("run-000001.jsonl", b"%d" % number)
    names = folder.names()
    assert [int(folder.read(name)) for name in names] == list(range(20)), "all carry the same second"
    assert all(name.startswith("run-000001-") and name.endswith(".jsonl") for name in names)


def test_files_and_folders_below_the_checkpoint_are_the_owners_alone(tmp_path):
    old = os.umask(0o022)
    try:
        folder = Folder(tmp_path / "checkpoint") / "jettison" / "ledger"
        folder.append("run.jsonl", b"{}\n")
        folder.replace("plan", b"{}")
    finally:
        os.umask(old)
    root = tmp_path / "checkpoint"
    assert [oct(path.stat().st_mode & 0o777) for path in (root, root / "jettison", root / "jettison" / "ledger")] == [
        "0o755",  # Spark's and the user's as well
        "0o700",
        "0o700",
    ]
    assert {oct(path.stat().st_mode & 0o777) for path in (root / "jettison" / "ledger").iterdir()} == {"0o600"}


def test_a_file_can_be_removed_once_or_twice(tmp_path):
    folder = Folder(tmp_path)
    folder.replace("plan", b"12345")
    assert folder.sizes() == {"plan": 5}
    folder.delete("plan")
    folder.delete("plan")
    assert folder.names() == []


@pytest.mark.parametrize("uri", ["/tmp/a b/c%20d", "file:///tmp/a b/c%20d", "file:/tmp/a b/c%20d"])
def test_a_path_means_what_it_says_as_spark_takes_it(uri):
    folder = Folder(uri)
    assert folder._path == "/tmp/a b/c%20d"
    assert folder.uri.removeprefix("file://") == "/tmp/a b/c%20d"


def test_a_path_is_escaped_for_readers_that_take_patterns():
    assert (Folder("/tmp/a[1]") / "{b}*?\\").glob_escaped == "/tmp/a\\[1\\]/\\{b\\}\\*\\?\\\\"
    assert Folder("/tmp/plain").glob_escaped == "/tmp/plain"


@pytest.mark.parametrize(
    ("log", "newest_us"),
    [
        ({}, None),
        (
            {
                "0": b'v1\n{"batchTimestampMs":5}\n0',
                "9": b'v1\n{"batchTimestampMs":7}\n-',
                "10": b'v1\n{"batchTimestampMs":6}',
            },
            6000,
        ),
        ({"0": b"v1\n{", ".0.crc": b"x"}, None),
        ({"0": b""}, None),
        ({"0": b'v1\n{"conf":{}}\n'}, None),
    ],
)
def test_the_time_of_the_newest_batch_stands_in_sparks_offset_log(tmp_path, log, newest_us):
    checkpoint = Folder(tmp_path)
    for name, content in log.items():
        (checkpoint / "offsets").replace(name, content)
    assert newest_batch_us(checkpoint / "jettison") == newest_us
