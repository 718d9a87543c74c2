"""What a `GroupDrop` says about rows: the semantics that every backend must share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.settings import GroupDrop

Floats = NDArray[np.float64]


def keep_shares(setting: GroupDrop, times_us: ArrayLike, groups: ArrayLike) -> Floats:
    """Probability of each row to be kept, from its time and the hash of its group. A row that is not late.

    >>> setting = GroupDrop(0.4, 10, (0,), (0.9,), ((7,),), ((0.25,),), new_keep_fraction=0.5)
    >>> keep_shares(setting, [3, 3, 13], [7, 8, 7]).tolist()
    [0.25, 0.9, 0.5]
    """
    time, group = np.asarray(times_us, np.int64), np.asarray(groups, np.int64)
    share = np.full(time.shape, setting.new_keep_fraction)
    for start, other, named, keeps in zip(
        setting.starts_us, setting.others, setting.groups, setting.keeps, strict=True
    ):
        here = (time >= start) & (time < start + setting.pane_us)
        share[here] = other
        if named:
            keys = np.array(named, np.int64)
            place = np.minimum(np.searchsorted(keys, group[here]), len(keys) - 1)
            share[here] = np.where(keys[place] == group[here], np.array(keeps)[place], other)
    return share


def other_share(setting: GroupDrop, start_us: int) -> float:
    """Probability of a row in the pane that starts then, if its group is not named.

    >>> other_share(GroupDrop(0.4, 10, (0,), (0.9,), ((),), ((),), new_keep_fraction=0.5), 10)
    0.5
    """
    if start_us in setting.starts_us:
        return setting.others[setting.starts_us.index(start_us)]
    return setting.new_keep_fraction
