"""One number for a group in a pane, so that an engine can count and look up both at once.

A group goes by the upper half of its 64-bit hash: short in a plan, and among 10,000 groups one pair in 86 plans is taken
for one. A key holds that number, and below it the pane's number modulo 64. The same six bits also turn over the highest
ones: the groups of consecutive panes then lie far apart in a table that is ordered by key, although their hashes are equal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Keys = NDArray[np.int64]

PANE_BITS = 6
PANES = 1 << PANE_BITS
"""Panes that keys tell apart; a row further back than that is taken for one of a newer pane."""

GROUP_BITS = 32
"""Bits of a group's hash that are looked at: the upper ones."""
_TOP = 64 - PANE_BITS


def packed(groups: ArrayLike, panes: ArrayLike) -> Keys:
    """Keys of groups, by the upper half of their hashes, in panes, by number.

    >>> packed([5, 5], [0, 1]).tolist()
    [21474836480, 288230397626548225]
    """
    residue = np.asarray(panes, np.int64) & np.int64(PANES - 1)
    return ((np.asarray(groups, np.int64) << np.int64(GROUP_BITS)) | residue) ^ (residue << np.int64(_TOP))


def unpacked(keys: ArrayLike, newest_pane: int) -> tuple[Keys, Keys]:
    """Groups and panes of keys, none of which is newer than `newest_pane`.

    >>> groups, panes = unpacked(packed([640, -64], [70, 69]), newest_pane=70)
    >>> groups.tolist(), panes.tolist()
    ([640, -64], [70, 69])
    """
    key = np.asarray(keys, np.int64)
    residue = key & np.int64(PANES - 1)
    groups = (key ^ (residue << np.int64(_TOP))) >> np.int64(GROUP_BITS)
    return groups, newest_pane - ((newest_pane - residue) % PANES)


def looked_up(keys: Keys, values: NDArray[np.float64], wanted: ArrayLike, otherwise: float) -> NDArray[np.float64]:
    """The value of each wanted key; `keys` ascend.

    >>> looked_up(np.array([3, 7]), np.array([0.3, 0.7]), [7, 8], otherwise=1.0).tolist()
    [0.7, 1.0]
    """
    found = np.asarray(wanted, np.int64)
    if not len(keys):
        return np.full(found.shape, otherwise)
    place = np.minimum(np.searchsorted(keys, found), len(keys) - 1)
    return np.where(keys[place] == found, values[place], otherwise)
