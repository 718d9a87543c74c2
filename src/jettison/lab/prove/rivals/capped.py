"""Spark with the best constant cap on a batch: `maxFilesPerTrigger`, as `maxOffsetsPerTrigger` is for Kafka.

Each file holds what arrives in 0.2 s, so a cap on files is one on rows: a batch never grows long, and what is left waits.
"""

from __future__ import annotations

from jettison.lab.prove.rivals.rival import Entry, Rival, Stage


def _enter(stage: Stage) -> Entry:
    return stage.bare(stage.rows(files_per_batch=round(stage.tuned)))


RIVAL = Rival("capped", "Spark with the best constant cap on a batch", _enter, tries=(2, 5, 10, 25), delays=True)
