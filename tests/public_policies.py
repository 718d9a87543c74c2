"""The policies that the package offers: tests that run each of them hold their own lists to this one."""

from __future__ import annotations

import jettison as jt
from jettison import policy as jp


def public_policies() -> set[str]:
    """Their names, but for that of the contract itself."""
    public = {name: getattr(where, name) for where in (jt, jp) for name in where.__all__}
    policies = {name for name, one in public.items() if isinstance(one, type) and issubclass(one, jp.Policy)}
    return policies - {"Policy"}
