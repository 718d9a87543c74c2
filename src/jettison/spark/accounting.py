"""Whether rows are counted by Spark's filter metrics or by `observe`: tried before it is relied on."""

from __future__ import annotations

import json
import logging
import time

from pyspark.sql import SparkSession

from jettison.core.redact import redacted
from jettison.core.storage import Folder
from jettison.errors import Unsupported, refuse
from jettison.spark import validate
from jettison.spark.executions import Executions

log = logging.getLogger("jettison")

_NOTE = "accounting.json"


def by_metrics(spark: SparkSession, folder: Folder, *, required: bool) -> bool:
    """Whether counts can be had from the driver's web interface; raises where they must be and cannot.

    Where they failed in the run before, a note in `folder` says so, and holds until metrics are asked for by name.
    """
    url = validate.web_interface(spark)
    if url is None:
        trouble: str | None = "a session without one (spark.ui.enabled=false, or Spark Connect)"
    else:
        trouble = Executions(url, spark.sparkContext.applicationId, "").trouble()
    if required:
        if trouble is not None:
            expected, hint = "accounting='metrics' needs the driver's web interface", "pass accounting='observe'"
            refuse(expected, trouble, hint=hint, error=Unsupported)
        folder.delete(_NOTE)
        return True
    if url is None:
        return False  # nothing is wrong: there is none
    before = folder.read(_NOTE)
    if trouble is None and before is not None:
        trouble = f"it failed in an earlier run ({_reason(before)}); pass accounting='metrics' to try it again"
    if trouble is not None:
        log.warning(
            "jettison: rows are counted by `observe`, because the driver's web interface is no help: %s", trouble
        )
    return trouble is None


def note_trouble(folder: Folder, reason: str) -> None:
    """Have the next start count by `observe`."""
    folder.replace(_NOTE, json.dumps({"at_s": time.time(), "because": redacted(reason)}).encode())


def _reason(note: bytes) -> str:
    try:
        return str(json.loads(note)["because"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return "unknown"
