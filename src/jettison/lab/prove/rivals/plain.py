"""Plain Spark: what comes waits."""

from __future__ import annotations

from jettison.lab.prove.rivals.rival import Rival

RIVAL = Rival("plain", "plain Spark", lambda stage: stage.bare(stage.rows()), delays=True)
