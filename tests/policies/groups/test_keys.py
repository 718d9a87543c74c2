"""Keys tell groups and panes apart, both ways."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jettison.policies.groups.group_keys import PANES, packed, unpacked

HASHES = st.integers(-(2**31), 2**31 - 1)


@given(st.lists(st.tuples(HASHES, st.integers(0, PANES - 1)), min_size=1), st.integers(-(10**6), 10**9))
def test_what_is_packed_comes_out_again(rows, newest):
    groups = np.array([group for group, _ in rows], np.int64)
    panes = newest - np.array([back for _, back in rows], np.int64)
    found, at = unpacked(packed(groups, panes), newest)
    assert (found == groups).all()
    assert (at == panes).all()


def test_a_group_lies_elsewhere_in_the_next_pane():
    first, second = packed([640, 640], [7, 8])
    assert first >> 58 != second >> 58
