"""The decisions of a drop point over arrays: what every backend must decide alike, row by row.

A row is kept where the hash of its identity does not exceed a threshold, and weighs the inverse of the share that the
threshold stands for. Each kind of setting says in `Setting.decide` which share a row has, or decides otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.core import hashing

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Rows that reach a drop point, column by column.

    Parameters
    ----------
    point, token
        Name of the drop point, and what tells its query from others.
    ids
        The long that identifies each row.
    columns
        What the kind of setting looks at, by name.
    late
        Which rows are older than the setting's `late_after_s`; none where not given.
    """

    point: str
    ids: NDArray[np.int64]
    columns: Mapping[str, Any] = field(default_factory=dict)
    late: Mask | None = None
    token: str = ""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def hashes(self) -> NDArray[np.int64]:
        """Hashes of the identities under the salt of drop point and token: what a threshold is compared with."""
        return hashing.salted(self.point, self.ids, self.token)

    def in_time(self, share: ArrayLike, late: ArrayLike) -> Floats:
        """The share of each row: one for those in time, another for late ones."""
        of_row = np.broadcast_to(np.asarray(share, float), len(self))
        return of_row if self.late is None else np.where(self.late, late, of_row)


class Decision(NamedTuple):
    """Which rows are kept, and what each of them weighs then."""

    keep: Mask
    weight: Floats


def everything(rows: Candidates) -> Decision:
    """Every row is kept, and weighs 1."""
    return Decision(np.ones(len(rows), bool), np.ones(len(rows)))


def by_share(share: Floats, hashes: NDArray[np.int64]) -> Decision:
    """Keep each row with its own probability."""
    return Decision(
        hashes <= hashing.thresholds(share), np.divide(1.0, share, out=np.ones(len(share)), where=share > 0.0)
    )
