"""Packages that come with an extra: asked for before a command does any work, and missed in one sentence."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from jettison.errors import Unsupported, refuse

_EXTRA: Mapping[str, str] = {
    "pyspark": "spark",
    "matplotlib": "demo",
    "numba": "reproduce",
    "confluent_kafka": "kafka",
    "plotly": "page",
    "prometheus_client": "metrics",
    "opentelemetry": "metrics",
}
"""The extra that brings a package."""


def require(*packages: str, where: str) -> None:
    """Raise `Unsupported`, with the extras to install, unless all these packages are installed.

    >>> require("numpy", where="`jettison plan`")
    """
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        extras = ",".join(_EXTRA[package] for package in missing)
        hint = f'pip install "/path/to/clone[{extras}]"'
        expected, them = f"{' and '.join(missing)} must be installed", "it" if len(missing) == 1 else "them"
        refuse(expected, f"an environment without {them}", where=where, hint=hint, error=Unsupported)
