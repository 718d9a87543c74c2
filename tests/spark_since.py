"""Marks for tests of what an older Spark does in another way, or refuses; `test_versions.py` looks at that."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pytest
from _pytest.mark import ParameterSet

FILTERS_DESCRIBED = pytest.mark.since(4, 3)
GROUPS_COUNTED = pytest.mark.since(4, 1)
ROWS_SAMPLED = pytest.mark.since(4, 2)
ACCOUNTING = [pytest.param("metrics", marks=FILTERS_DESCRIBED), "observe"]


def cases(names: Iterable[str], *, quick: Collection[str] | None = None) -> list[ParameterSet]:
    """Cases by policy or by kind of setting; those that name groups are marked, and so are those that are not quick."""

    def marks(name: str) -> list[pytest.MarkDecorator]:
        by_groups = name.startswith(("ConceptDrop", "JoinDrop", "group"))
        return [GROUPS_COUNTED] * by_groups + [pytest.mark.long] * (quick is not None and name not in quick)

    return [pytest.param(name, marks=marks(name)) for name in names]
