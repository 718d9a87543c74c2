"""Errors of Spark's whose reason is ours, or stands below a page of something else: said in a sentence."""

from __future__ import annotations

import re

from jettison.errors import InvalidSetting, JettisonError, Unsupported, explain
from jettison.runtime.status import reason

OTHER_WINDOWS = "as the policy was told"
"""In the error that a task raises over windows of another size."""
_MODE = "a guarded query must run in micro-batches"
# As systems, Java and Hadoop's filesystems say that a disk is full, or that this user may not write there.
_NOT_WRITABLE = re.compile(
    r"No space left|[Qq]uota exceeded|[Rr]ead-only file system|[Pp]ermission denied|Operation not permitted"
    r"|Access ?Denied|AccessControlException|[Mm]kdirs? (failed|of)|[Ff]ailed to create (dir|parent)"
)
_RAISED = re.compile(rf"\[USER_RAISED_EXCEPTION\] (.*{OTHER_WINDOWS}.*?)(?: SQLSTATE|$)", re.MULTILINE)
# Spark's words for what it refuses there. A writer shows its trigger to nobody, so it cannot be seen before.
_TRIGGERS = {
    "STREAMING_REAL_TIME_MODE": ("real-time mode", "realTime"),
    "Continuous processing does not support": ("continuous processing", "continuous"),
}


def explained(error: BaseException | str) -> JettisonError | None:
    """The same in our words, to be raised from it; `None` where Spark's own will do."""
    text = str(error)
    for words, (mode, option) in _TRIGGERS.items():
        if words in text:
            why = "a plan is read once a micro-batch, and latency ends with its commit"
            got = f"{mode} ({text.partition(chr(10))[0]})"
            return Unsupported(explain(_MODE, got, hint=f"leave `{option}` out of the trigger: {why}"))
    if raised := _RAISED.search(text):
        return InvalidSetting(raised[1])
    # What Spark did not foresee comes from py4j, with the call before the error and the whole stack behind it.
    if (isinstance(error, OSError) or hasattr(error, "java_exception")) and _NOT_WRITABLE.search(text):
        hint = "is there room, and may this user write, where the checkpoint and the sink lie?"
        got = reason(text.rpartition("\n: ")[2])
        return Unsupported(explain("a query that Spark can start", got, hint=hint))
    return None
