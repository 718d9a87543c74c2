"""Marks for tests of what an older Spark does in another way, or refuses; `test_versions.py` looks at that."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet

FILTERS_DESCRIBED = pytest.mark.since(4, 3)
GROUPS_COUNTED = pytest.mark.since(4, 1)
ROWS_SAMPLED = pytest.mark.since(4, 2)
ACCOUNTING = [pytest.param("metrics", marks=FILTERS_DESCRIBED), "observe"]


def cases(names: Iterable[str]) -> list[ParameterSet]:
    """Cases by policy or by kind of setting; those that name groups are marked."""
    by_groups = ("ConceptDrop", "JoinDrop", "group")
    return [pytest.param(name, marks=[GROUPS_COUNTED] if name.startswith(by_groups) else []) for name in names]
