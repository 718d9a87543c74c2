from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.core.hashing import salted, thresholds


def keeps(point: str, ids: np.ndarray, share: float) -> np.ndarray:
    return salted(point, ids) <= thresholds(np.array(share))


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.text(max_size=12))
def test_a_lower_share_keeps_a_subset(first: float, second: float, point: str) -> None:
    ids = np.arange(2_000)
    low, high = sorted((first, second))
    assert np.all(keeps(point, ids, high)[keeps(point, ids, low)])


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_the_share_is_met_and_two_points_decide_independently(share: float) -> None:
    ids = np.arange(200_000, dtype=np.int64) * 1_000_003
    one, other = keeps("one", ids, share), keeps("other", ids, share)
    assert one.mean() == pytest.approx(share, abs=0.005)
    assert (one & other).mean() == pytest.approx(share * share, abs=0.005)


def test_the_ends_of_the_scale_are_exact() -> None:
    ids = np.arange(1_000)
    assert keeps("p", ids, 1.0).all()
    assert not keeps("p", ids, 0.0).any()
    assert int(thresholds(np.array(0.5))) == 0
