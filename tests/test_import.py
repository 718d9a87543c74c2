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
import jettison.runtime.pilot, jettison.control.controller, jettison.policy
plan = jettison.policy.DropPlan(1, {"a": jettison.policy.RandomDrop(0.5)})
policy = jettison.WindowDrop(time="at", window="10 seconds", max_gap=3)
loaded = sorted(name for name in sys.modules if name.split(".")[0] in ("pyspark", "py4j"))
print(",".join(loaded))
"""


def test_importing_jettison_does_not_import_pyspark():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_what_needs_spark_says_so_where_it_is_not_installed() -> None:
    script = """
import sys, importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "pyspark" else found(name, package)
sys.modules["pyspark"] = None
import jettison
try:
    jettison.avg
except jettison.JettisonError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert "pyspark must be installed, got an environment without it for `jettison.avg`. Hint: pip" in done.stdout, (
        done.stderr
    )


def test_the_command_line_imports_the_laboratory_only_for_the_command_that_is_run():
    modules = "print([name for name in sys.modules if name[:12] == 'jettison.lab'])"
    script = f"import sys, jettison.cli, jettison.page.command; {modules}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_package_has_few_names():
    assert len(jettison.__all__) <= 24


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


def test_aggregates_can_be_imported_as_functions() -> None:
    from jettison import functions

    both = set(functions.__all__) & set(jettison.__all__)
    assert {"avg", "count", "sum"} <= both
    assert all(getattr(functions, name) is getattr(jettison, name) for name in both)


def test_a_module_of_the_product_is_known_by_its_name() -> None:
    """No two share one, and few lie at the top."""
    top = Path(jettison.__file__).parent
    names = [path.stem for path in top.rglob("*.py") if path.stem != "__init__" and "lab" not in path.parts]
    assert sorted(names) == sorted(set(names))
    assert len([path for path in top.glob("*.py") if path.stem != "__init__"]) <= 8
