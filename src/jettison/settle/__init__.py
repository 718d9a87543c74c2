"""Exact answers later for everything that was shed: `reconcile` settles windows, `audit` holds answers against them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jettison.settle.audited import Verdict as Verdict
    from jettison.settle.audited import audit as audit
    from jettison.settle.settlement import Settlement as Settlement
    from jettison.settle.settlement import reconcile as reconcile

# Loaded when they are used: `jettison top` reads the record without pyspark.
_HOME = {
    "Settlement": "jettison.settle.settlement",
    "Verdict": "jettison.settle.audited",
    "audit": "jettison.settle.audited",
    "reconcile": "jettison.settle.settlement",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
