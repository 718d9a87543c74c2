"""Rows that have come to a folder, by its files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from jettison.core.storage import Folder
from jettison.spark.folder_rows import FolderRows

LINE = '{"zone": 7, "fare": 12.5}\n'


def counted(folder: Path) -> FolderRows:
    rows = FolderRows(Folder(folder))
    rows()
    return rows


@pytest.mark.parametrize("suffix", ["json", "csv", "txt"])
def test_lines_of_text_count(tmp_path: Path, suffix: str) -> None:
    rows = counted(tmp_path)
    (tmp_path / f"a.{suffix}").write_text(LINE * 300)
    (tmp_path / f"b.{suffix}").write_text(LINE * 700)
    assert rows() == pytest.approx(1000)
    assert rows() == pytest.approx(1000), "each file counts once"


def test_a_large_file_is_not_read_whole(tmp_path: Path) -> None:
    rows = counted(tmp_path)
    (tmp_path / "a.json").write_text(LINE * 100_000)
    assert rows() == pytest.approx(100_000, rel=0.01)


@pytest.mark.parametrize("write", [pq.write_table, orc.write_table])
def test_footers_of_parquet_and_orc_count(tmp_path: Path, write) -> None:  # type: ignore[no-untyped-def]
    rows = counted(tmp_path)
    write(pa.table({"id": list(range(12_345))}), str(tmp_path / "a"))
    write(pa.table({"id": list(range(1_000))}), str(tmp_path / "b"))
    assert rows() == pytest.approx(13_345)


def test_files_from_before_the_first_question_count_for_nothing_but_say_what_a_row_takes(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(LINE * 500)
    rows = FolderRows(Folder(tmp_path))
    assert rows() == 0.0
    (tmp_path / "b.json").write_text(LINE * 10)
    assert rows() == pytest.approx(10)


def test_deleted_files_have_come_all_the_same(tmp_path: Path) -> None:
    """As `cleanSource` does."""
    rows = counted(tmp_path)
    (tmp_path / "a.json").write_text(LINE * 100)
    assert rows() == pytest.approx(100)
    (tmp_path / "a.json").unlink()
    assert rows() == pytest.approx(100)


def test_hidden_files_do_not_count_and_folders_of_partitions_do(tmp_path: Path) -> None:
    rows = counted(tmp_path)
    for name in ("_spare.json", ".a.json.tmp", "_temporary/0/a.json", ".hidden/a.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(LINE * 100)
    assert rows() == 0.0
    for name in ("day=1/hour=2/a.json", "_day=2/a.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(LINE * 100)
    assert rows() == pytest.approx(200)


def test_a_file_that_is_still_written_counts_as_it_grows(tmp_path: Path) -> None:
    rows = counted(tmp_path)
    with (tmp_path / "a.json").open("w") as file:
        for _ in range(4):
            file.write(LINE * 50 + LINE[:9])
            file.flush()
            rows()
            file.write(LINE[9:])
            file.flush()
    assert rows() == pytest.approx(204, rel=0.02)


def test_an_unfinished_parquet_file_is_looked_into_again(tmp_path: Path) -> None:
    rows = counted(tmp_path)
    pq.write_table(pa.table({"id": list(range(1000))}), tmp_path / ".a")
    content = (tmp_path / ".a").read_bytes()
    (tmp_path / "a.parquet").write_bytes(content[: len(content) // 2])
    assert rows() is None
    (tmp_path / "a.parquet").write_bytes(content)
    assert rows() == pytest.approx(1000, rel=0.01)


@pytest.mark.parametrize("content", [b"\x1f\x8b\x08 compressed", b"Obj\x01\x00 avro", b"\x28\xb5\x2f\xfd\x00zstd"])
def test_what_cannot_be_read_is_not_known(tmp_path: Path, content: bytes) -> None:
    rows = counted(tmp_path)
    (tmp_path / "a").write_bytes(content)
    assert rows() is None


def test_a_folder_that_is_not_there_yet_has_no_rows(tmp_path: Path) -> None:
    rows = counted(tmp_path / "in")
    assert rows() == 0.0
