"""Matching by sorted ranks finds the same pairs as comparing each with each."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.policies.regions import matching
from jettison.source.space import comparable
from sifter_cases import random_queries, random_rows, random_space


@pytest.mark.parametrize("seed", range(30))
def test_it_finds_what_comparing_each_with_each_finds(seed, monkeypatch):
    monkeypatch.setattr(matching, "_PAIRS_AT_ONCE", 37)  # many small blocks, as with very many queries
    random = np.random.default_rng(seed)
    space = random_space(random)
    rows = random_rows(random, space, int(random.integers(0, 60)))
    queries = random_queries(random, space, int(random.integers(1, 40)))
    placed = comparable(rows)
    inside = ((placed[None] >= queries.low[:, None]) & (placed[None] < queries.high[:, None])).all(axis=2)
    query, point = queries.matches(rows)
    found = np.zeros((len(queries), len(rows)), dtype=int)
    np.add.at(found, (query, point), 1)
    assert found.max(initial=0) <= 1
    expected = np.zeros_like(found)
    np.add.at(expected, queries.owner, inside.astype(int))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(queries.hits(rows), inside.sum(axis=0))
