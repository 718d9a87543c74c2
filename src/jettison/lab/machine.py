"""What a figure was measured on: a timing without it says nothing."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version


def this_machine() -> str:
    """Cores, processor and versions, in one line."""
    about = [f"{os.cpu_count()} cores", platform.machine(), f"Python {platform.python_version()}"]
    with suppress(PackageNotFoundError):  # the pure benchmarks run without it
        about.append(f"Spark {version('pyspark')}")
    return ", ".join(about)
