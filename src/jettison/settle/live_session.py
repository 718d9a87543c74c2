"""Settings of the live query's session that its answers depend on: where exact ones are made they must be the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from jettison.core import storage
from jettison.errors import InvalidInput, refuse
from jettison.runtime.ledger import Ledger


def live_session(checkpoint: str | Path) -> Mapping[str, str]:
    """Those of the query's last run; nothing where they are not on record."""
    return dict(last_start(Ledger(storage.home(checkpoint) / "ledger")).get("session", {}))


def last_start(ledger: Ledger) -> Mapping[str, Any]:
    """What the last run said of itself when it began; in short where that record is gone."""
    return ledger.last("start") or next((each.start for each in ledger.pruned() if each.start), {})


@contextmanager
def adopted(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Give a session these settings for a while."""
    before = {name: str(spark.conf.get(name)) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def refuse_other(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Refuse a session that differs from the live one: times would be read otherwise, and windows shift."""
    for name, value in settings.items():
        here = spark.conf.get(name)
        if str(here).lower() != value.lower():
            hint = f"spark.conf.set({name!r}, {value!r}), and back again afterwards"
            refuse(f"`{name}` must be {value!r}, as in the live query", repr(here), hint=hint, error=InvalidInput)
