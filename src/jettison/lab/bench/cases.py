"""One case of a benchmark, or all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from jettison.errors import did_you_mean, refuse

_Case = TypeVar("_Case")


def chosen(cases: Mapping[str, _Case], only: str | None) -> dict[str, _Case]:
    """The case that `--only` names, or all.

    >>> chosen({"a": 1, "b": 2}, "b"), chosen({"a": 1}, None)
    ({'b': 2}, {'a': 1})
    """
    if only is not None and only not in cases:
        hint = did_you_mean(only, cases, otherwise="leave --only out to run all of them")
        refuse(f"--only must be one of {', '.join(cases)}", repr(only), hint=hint)
    return {name: case for name, case in cases.items() if only in (None, name)}
