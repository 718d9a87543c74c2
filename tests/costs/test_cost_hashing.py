from __future__ import annotations

import datetime
import os
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.costs.cost_hashing import SharedHashes, fingerprints
from jettison.errors import InvalidInput, InvalidSetting

text = st.text(max_size=12)


@settings(deadline=None)
@given(st.lists(text, max_size=30), st.lists(text, max_size=30))
def test_a_key_has_one_fingerprint_wherever_it_stands(before: list[str], after: list[str]) -> None:
    alone = fingerprints(pa.array(["key"]))[0]
    assert fingerprints(pa.array([*before, "key", *after], pa.string()))[len(before)] == alone


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), text), min_size=1, max_size=30), st.integers(0, 29))
def test_slices_dictionaries_and_wide_strings_agree(keys: list[str | None], start: int) -> None:
    array = pa.array(keys, pa.string())
    expected = fingerprints(array)
    start %= len(keys)
    assert fingerprints(array.slice(start)).tolist() == expected[start:].tolist()
    assert fingerprints(array.dictionary_encode()).tolist() == expected.tolist()
    assert fingerprints(array.cast(pa.large_string())).tolist() == expected.tolist()
    assert fingerprints(pa.chunked_array([array, array])).tolist() == [*expected, *expected]


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), text), max_size=30))
def test_short_keys_hash_alike_whether_or_not_a_long_one_is_among_them(keys: list[str | None]) -> None:
    long = "a document that somebody took for a key"
    assert len(long) > 32
    assert fingerprints(pa.array([*keys, long], pa.string()))[:-1].tolist() == fingerprints(pa.array(keys)).tolist()


def test_different_keys_get_different_fingerprints() -> None:
    keys = [f"user {number}" for number in range(20_000)]
    # Among 20,000 keys of 32 bits about 0.05 pairs are expected to collide.
    assert len(set(fingerprints(keys).tolist())) >= 19_999
    assert len(set(fingerprints(np.arange(20_000)).tolist())) >= 19_999


@pytest.mark.parametrize("pair", [("a", "a\0"), ("", "\0"), ("ab", "ba")])
def test_near_twins_are_told_apart(pair: tuple[str, str]) -> None:
    one, other = fingerprints(pa.array(pair))
    assert one != other


def test_numbers_of_all_widths_times_and_booleans_are_keys() -> None:
    wide = fingerprints(pa.array([1, None, 3], pa.int64()))
    assert fingerprints(pa.array([1, None, 3], pa.int16())).tolist() == wide.tolist()
    assert fingerprints(pa.array([0.0, -0.0])).tolist()[0] == fingerprints(pa.array([-0.0])).tolist()[0]
    assert len(set(fingerprints(pa.array([True, False, None])).tolist())) == 3
    assert len(set(fingerprints(pa.array([1, 2], pa.timestamp("us"))).tolist())) == 2
    assert len(set(fingerprints(pa.array([1, 2], pa.date32())).tolist())) == 2
    assert len(set(fingerprints(pa.array([Decimal("1.10"), Decimal("1.11"), None])).tolist())) == 3


def test_keys_of_other_types_are_refused() -> None:
    with pytest.raises(InvalidInput, match="keys must be integers"):
        fingerprints(pa.array([[1], [2]]))
    with pytest.raises(InvalidInput, match="keys of one simple type"):
        fingerprints(["a", 1])


def test_another_process_with_another_hash_seed_computes_the_same_cells() -> None:
    keys = "['a', 'b', None, 'long key'], [1, None, -7], [0.5, -0.0], [b'raw', b''], [datetime.date(2026, 1, 31), None]"
    cells = f"[SharedHashes(4, 55, seed=3).cells(fingerprints(keys)).tolist() for keys in ({keys})]"
    program = f"import datetime; from jettison.costs.cost_hashing import *; print({cells})"
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(sys.path)}
    there = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    here = eval(cells, {"SharedHashes": SharedHashes, "fingerprints": fingerprints, "datetime": datetime})
    assert there.stdout.strip() == str(here)


@pytest.mark.parametrize("columns", [2, 54, 55, 64, 1000])
def test_two_keys_collide_about_once_in_columns_over_the_seeds(columns: int) -> None:
    keys = np.array([12, 4_000_000_000], dtype=np.uint32)
    seeds = 6000
    collisions = sum(
        int(cells[0] == cells[1]) for cells in (SharedHashes(1, columns, seed).cells(keys)[0] for seed in range(seeds))
    )
    # Five standard deviations of a binomial: the family is fixed by its seeds, so this is no coin toss.
    assert collisions / seeds <= 1 / columns + 5 * (1 / columns / seeds) ** 0.5


def test_cells_stay_in_their_row() -> None:
    cells = SharedHashes(3, 7, seed=1).cells(np.arange(5000, dtype=np.uint32))
    assert [(int(row.min()), int(row.max())) for row in cells] == [(0, 6), (7, 13), (14, 20)]


def test_shapes_without_cells_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="must be positive"):
        SharedHashes(0, 5)
