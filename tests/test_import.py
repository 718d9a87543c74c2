"""Importing the package costs no Spark, and everything it names is there."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import jettison

# The pure names, used, not only imported.
SCRIPT = """
import sys
import jettison
import jettison.pilot, jettison.control, jettison.policies.checks
plan = jettison.DropPlan(1, {"a": jettison.RandomDrop(0.5)})
loaded = sorted(name for name in sys.modules if name.split(".")[0] in ("pyspark", "py4j"))
print(",".join(loaded))
"""


def test_importing_jettison_does_not_import_pyspark():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("name", jettison.__all__)
def test_every_public_name_resolves(name):
    assert getattr(jettison, name) is not None


def test_public_names_are_sorted_and_each_named_once():
    assert jettison.__all__ == sorted(set(jettison.__all__))


def test_an_unknown_name_is_an_attribute_error_as_for_any_module():
    with pytest.raises(AttributeError, match="no attribute 'shedder_of_the_future'"):
        _ = jettison.shedder_of_the_future


def test_the_extra_for_spark_has_what_load_aware_needs() -> None:
    """PySpark's `mapInArrow` asks for pandas."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert {re.match(r"[\w-]+", need)[0] for need in project["optional-dependencies"]["spark"]} == {"pyspark", "pandas"}
