"""How far an answer may be trusted, in the words of its `status`: docs/estimators.md says what each means."""

from __future__ import annotations

EXACT = "exact"
UNCONFIRMED = "unconfirmed"
BOUNDED = "bounded"
FEW_ROWS = "few rows"
DEPENDENT_ROWS = "dependent rows"
FROM_HISTORY = "borrowed from history"
FROM_NEIGHBOURS = "borrowed from neighbours"
UNKNOWN = "unknown"
