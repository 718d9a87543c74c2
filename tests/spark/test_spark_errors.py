"""What Spark raises is said in a sentence where the reason is ours, and left alone elsewhere."""

from __future__ import annotations

import pytest

from jettison.errors import InvalidSetting, Unsupported
from jettison.spark.spark_errors import explained


class FromPy4j(Exception):
    java_exception = object()


def test_an_error_of_another_window_is_the_sentence_without_the_plan() -> None:
    ours = (
        "windows of 2 s, as the policy was told, got one from 1 to 4. Hint: give WindowDrop the windows of the query."
    )
    text = f"[STREAM_FAILED] Query: [USER_RAISED_EXCEPTION] {ours} SQLSTATE: P0001 SQLSTATE: XXKST\n=== Streaming"
    found = explained(text)
    assert isinstance(found, InvalidSetting)
    assert str(found) == ours


def test_an_error_that_nobody_foresaw_loses_its_stack() -> None:
    text = "An error occurred while calling o9.start.\n: java.io.IOException: No space left\n\tat a.B(B.java)\n"
    found = explained(FromPy4j(text))
    assert isinstance(found, Unsupported)
    assert "java.io.IOException: No space left. Hint: is there room" in str(found)
    assert isinstance(explained(OSError(28, "No space left on device")), Unsupported)


def test_what_spark_says_well_is_left_alone() -> None:
    assert explained("[TABLE_OR_VIEW_NOT_FOUND] no such table") is None
    assert explained("[USER_RAISED_EXCEPTION] boom. Hint: look. SQLSTATE: P0001") is None
    assert explained(ValueError("no zone 7")) is None


@pytest.mark.parametrize(
    "error",
    [
        OSError(111, "Connection refused"),
        FileNotFoundError(2, "No such file or directory", "zones.csv"),
        FromPy4j("An error occurred while calling o9.start.\n: java.lang.NullPointerException\n\tat a.B(B.java)\n"),
        FromPy4j("An error occurred while calling o9.start.\n: java.net.UnknownHostException: broker-1\n\tat a.B\n"),
    ],
)
def test_an_error_that_is_not_about_writing_is_not_said_to_be(error: Exception) -> None:
    assert explained(error) is None


@pytest.mark.parametrize(
    "said",
    [
        "java.nio.file.AccessDeniedException: /c/commits",
        "java.io.FileNotFoundException: /c/metadata (Permission denied)",
        "java.io.IOException: Mkdirs failed to create file:/c/offsets",
        "org.apache.hadoop.security.AccessControlException: Permission denied: user=ann",
    ],
)
def test_an_error_about_writing_asks_for_room_and_permission(said: str) -> None:
    assert "is there room" in str(explained(FromPy4j(f"An error occurred while calling o9.start.\n: {said}\n\tat a")))
