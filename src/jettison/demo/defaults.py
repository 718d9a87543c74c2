"""What the demo runs with unless told otherwise. Imports no Spark, so that the command line can show it."""

from __future__ import annotations

from pathlib import Path

LOADS = (0.5, 3.0, 0.5)
"""Arrival rates of the three phases, in capacities of the machine."""
SECONDS = (12.0, 42.0, 12.0)
"""How long each phase lasts."""
BOUND_S = 10.0
PICTURE = Path("jettison-demo.png")
