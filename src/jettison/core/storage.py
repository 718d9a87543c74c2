"""A folder on any filesystem that Spark and this process both reach, with atomic replacement and appending.

The plan, the controller's state and the ledger live beside the checkpoint, wherever that is: a local disk, HDFS or
an object store. Files are reached through `pyarrow.fs`, because Spark offers no public way to do it from Python.
On a local disk they are readable by this user alone: what is on record names the user's data.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import time
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from pyarrow import fs

from jettison.core.redact import redacted
from jettison.errors import InvalidInput, Unsupported, refuse

# Hadoop's name for a scheme, and the name under which pyarrow knows it.
_PYARROW_SCHEME = {"s3a": "s3", "s3n": "s3", "abfss": "abfss", "abfs": "abfs"}
_OBJECT_STORES = ("s3", "gcs", "gs", "abfs", "abfss", "py")
_PATTERN = re.compile(r"[\[\]{}*?\\]")
_OWNER_ONLY_FILE, _OWNER_ONLY_FOLDER = 0o600, 0o700


def home(checkpoint: str | Path) -> Folder:
    """Where everything of Jettison's lies beside a query's checkpoint."""
    return Folder(checkpoint) / "jettison"


def known_home(checkpoint: str) -> Folder:
    """The same of a query that has something on record, or a function in it; any other checkpoint is refused."""
    found = home(checkpoint)
    if not any((found / name).names() for name in ("ledger", "companions")):
        hint = "pass the `checkpoint` of a Shedder that was started, the folder in which `jettison/` lies"
        expected = "`CHECKPOINT` must be that of a query that has run under Jettison"
        refuse(expected, redacted(found.parent.uri), hint=hint, error=InvalidInput)
    return found


def was_used(home: Folder) -> bool:
    """Whether Spark has run a query on the checkpoint beside which everything of Jettison's lies."""
    return any((home.parent / name).names() for name in ("offsets", "commits"))


def newest_batch_us(home: Folder) -> int | None:
    """The time of the newest batch that Spark has begun on the checkpoint, as its offset log has it; `None` without one.

    Spark may repeat that batch, and no older one, at the next start.
    """
    newest = _newest_batch(home)
    return None if newest is None else newest[1]


def running_batch(home: Folder) -> tuple[int, int] | None:
    """Number and time of the batch that Spark has begun and not committed; `None` where there is none."""
    newest = _newest_batch(home)
    return newest if newest is not None and (home.parent / "commits").read(str(newest[0])) is None else None


def _newest_batch(home: Folder) -> tuple[int, int] | None:
    log = home.parent / "offsets"
    newest = max((int(name) for name in log.names() if name.isdecimal()), default=None)
    if newest is None:
        return None
    try:
        _version, facts, *_ = (log.read(str(newest)) or b"").split(b"\n")
        return newest, int(json.loads(facts)["batchTimestampMs"]) * 1000
    except (ValueError, TypeError, LookupError):  # Spark itself will say what is wrong with it
        return None


class Folder:
    """A folder named by a path or URI.

    `replace` is atomic: a reader sees the old content or the new, never a mixture. `append` adds whole records only.
    Files, and folders below the one named first, are made for this user alone where the disk is local.

    Parameters
    ----------
    uri
        A local path (relative ones are taken from the working directory) or a URI such as `hdfs://host/path`.

    Examples
    --------
    >>> import tempfile
    >>> folder = Folder(tempfile.mkdtemp()) / "jettison"
    >>> folder.replace("plan.json", b"{}")
    >>> folder.read("plan.json"), folder.read("missing.json")
    (b'{}', None)
    """

    def __init__(self, uri: str | Path) -> None:
        text = str(uri)
        scheme = urlsplit(text).scheme
        self._root: str | None = None
        if len(scheme) <= 1 or scheme == "file":  # a single letter is a Windows drive
            path = Path(_local_path(text) if scheme == "file" else text).absolute()
            # Spark takes what follows `file:` as it stands, so nothing is percent-encoded.
            self.uri = f"file://{path}" if scheme == "file" else str(path)
            self._filesystem, self._path = fs.LocalFileSystem(), str(path)
            self._root = self._path
        else:
            self.uri = text.rstrip("/")
            self._filesystem, self._path = _remote(self.uri, scheme)

    def __truediv__(self, name: str) -> Folder:
        return self._elsewhere(f"{self.uri}/{name}", f"{self._path}/{name}")

    @property
    def parent(self) -> Folder:
        """The folder that this one lies in."""
        return self._elsewhere(self.uri.rpartition("/")[0], self._path.rpartition("/")[0])

    def _elsewhere(self, uri: str, path: str) -> Folder:
        other = copy.copy(self)
        other.uri, other._path = uri, path
        return other

    def __repr__(self) -> str:
        return f"Folder({self.uri!r})"

    @property
    def located(self) -> tuple[fs.FileSystem, str]:
        """The filesystem, and the folder's path on it."""
        return self._filesystem, self._path

    @property
    def is_blocked(self) -> bool:
        """Whether a file lies where this folder, or one above it, would have to; of remote folders that is not known."""
        return self._root is not None and any(path.is_file() for path in (Path(self._path), *Path(self._path).parents))

    @property
    def keeps_readers(self) -> bool:
        """Whether a reader sees the old content to its end when a file is replaced under it.

        On S3 Hadoop's client fails then, and on HDFS `pyarrow` deletes the old file before it renames the new one.
        """
        return self._root is not None

    @property
    def is_object_store(self) -> bool:
        """Whether there are files alone, under long names: no folder can be renamed, and a file is written all at once."""
        return self._filesystem.type_name in _OBJECT_STORES

    @property
    def glob_escaped(self) -> str:
        """The folder's URI as a reader of Spark's must be given it, which takes some characters for patterns."""
        return _PATTERN.sub(r"\\\g<0>", self.uri)

    def read(self, name: str, start: int = 0) -> bytes | None:
        """Content of a file from byte `start` on, or `None` where there is no such file."""
        try:
            with self._filesystem.open_input_file(f"{self._path}/{name}") as file:
                file.seek(start)
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def replace(self, name: str, content: bytes) -> None:
        """Write a file so that readers see the old content or the new one."""
        target = f"{self._path}/{name}"
        if self.is_object_store:
            self._write(target, content)  # a put is atomic there, and a rename would copy
            return
        self._make()
        temporary = f"{self._path}/.{name}.{uuid.uuid4().hex}"
        self._write(temporary, content)
        self._filesystem.move(temporary, target)

    def append(self, name: str, content: bytes) -> None:
        """Add whole records to a file; where the filesystem cannot append, write a new file beside it."""
        self._make()
        if self._root is not None:
            with open(f"{self._path}/{name}", "ab", opener=_owner_only) as file:
                file.write(content)
            return
        try:
            stream = self._filesystem.open_append_stream(f"{self._path}/{name}")
        except NotImplementedError:
            stem, suffix = os.path.splitext(name)
            # Object stores tell time in seconds; the name keeps the order of what was written within one.
            self._write(f"{self._path}/{stem}-{time.time_ns():020d}-{uuid.uuid4().hex}{suffix}", content)
            return
        with stream:
            stream.write(content)

    def delete(self, name: str) -> None:
        """Remove a file; nothing happens where there is none."""
        with contextlib.suppress(FileNotFoundError):
            self._filesystem.delete_file(f"{self._path}/{name}")

    def names(self) -> list[str]:
        """Names of the files in the folder, oldest first; empty where there is no such folder."""
        return list(self.sizes())

    def sizes(self) -> dict[str, int]:
        """Size in bytes by name of the file, oldest first; empty where there is no such folder."""
        try:
            listed = self._filesystem.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
        except FileNotFoundError:  # pyarrow looks twice, and the folder may be made in between
            return {}
        found = [info for info in listed if info.type == fs.FileType.File]
        oldest_first = sorted(found, key=lambda info: (info.mtime_ns or 0, info.base_name))
        return {info.base_name: info.size or 0 for info in oldest_first}

    def _make(self) -> None:
        """Make the folder. The one named first may be somebody else's too: it is the query's checkpoint."""
        if self.is_object_store:  # which has none: making one would be a request for each name in the path
            return
        if self._root is None:
            self._filesystem.create_dir(self._path, recursive=True)
            return
        if os.path.isdir(self._path):
            return
        path = self._root
        os.makedirs(path, exist_ok=True)
        for name in self._path.removeprefix(self._root).strip("/").split("/"):
            path = f"{path}/{name}"
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, _OWNER_ONLY_FOLDER)

    def _write(self, path: str, content: bytes) -> None:
        if self._root is not None:
            with open(path, "wb", opener=_owner_only) as file:
                file.write(content)
            return
        with self._filesystem.open_output_stream(path) as stream:
            stream.write(content)


def _local_path(uri: str) -> str:
    """What follows `file:` and an empty host."""
    path = uri.removeprefix("file:")
    return "/" + path.lstrip("/") if path.startswith("//") else path


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags, _OWNER_ONLY_FILE)


def _remote(uri: str, scheme: str) -> tuple[fs.FileSystem, str]:
    # Spark takes the path as it stands; pyarrow takes it for that of a URI.
    host, slash, path = uri[len(scheme) :].removeprefix("://").partition("/")
    translated = f"{_PYARROW_SCHEME.get(scheme, scheme)}://{host}{slash}{quote(path, safe='/:@')}"
    try:
        filesystem, path = _opened(translated)
    except (ValueError, OSError, ImportError, NotImplementedError) as error:
        refuse(
            "a folder must lie on a filesystem that this process can write",
            f"{uri!r} ({error})",
            hint="use a local path, hdfs, s3, gs or abfs, and give this process its credentials",
            error=Unsupported,
            cause=error,
        )
    return filesystem, path.rstrip("/")


def _opened(uri: str) -> Any:
    """The filesystem of a URI, and the path on it; on S3 what is small is written in one request, where pyarrow can."""
    if uri.startswith("s3:"):
        with contextlib.suppress(ValueError):  # an older one does not know the option
            return fs.FileSystem.from_uri(f"{uri}?allow_delayed_open=true")
    return fs.FileSystem.from_uri(uri)
