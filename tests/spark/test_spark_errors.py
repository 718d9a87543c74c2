"""What Spark raises is said in a sentence where the reason is ours, and left alone elsewhere."""

from __future__ import annotations

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
