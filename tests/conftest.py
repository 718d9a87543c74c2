"""What all tests share: none is timed, every Java is brief, and the long files come first."""

import os

import pytest
from hypothesis import settings

# On a loaded machine hypothesis must not fail an example for having been slow.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Every Java that a test starts, drivers and executors too, runs for seconds: the first compiler alone takes half as much
# CPU as both, and a garbage collection for each step by which the classes' memory grows takes a tenth of the time.
_BRIEF = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:NewRatio=1 -XX:MetaspaceSize=256m"
os.environ["JDK_JAVA_OPTIONS"] = _BRIEF


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on Spark first: files go to the two processes whole, and short ones at the end leave neither waiting."""
    items.sort(key=lambda item: item.path.parent.name != "spark")
