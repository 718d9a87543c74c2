"""Programs that tests use where the machine has them; with JETTISON_TEST_PAGE set, none of these tests may skip."""

from __future__ import annotations

import os
from shutil import which

import pytest


def tool(*names: str) -> str:
    """Where the first of these programs lies that is there; without one the module that asks is skipped."""
    found = next(filter(None, map(which, names)), None)
    if found is None and "JETTISON_TEST_PAGE" not in os.environ:
        pytest.skip(f"no {names[0]} on this machine: apt-get install {names[0]}", allow_module_level=True)
    assert found is not None, f"JETTISON_TEST_PAGE is set, and there is no {' or '.join(names)}"
    return found
