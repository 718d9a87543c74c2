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
# To verify Spark's own classes takes a tenth of what a driver takes up to the end of its first batches.
_UNVERIFIED = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
os.environ["JDK_JAVA_OPTIONS"] = f"{_BRIEF} {_UNVERIFIED}"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: one of many, or in drivers that are killed: `make test-long` runs it")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on Spark first: files go to the two processes whole, and short ones at the end leave neither waiting."""
    items.sort(key=lambda item: item.path.parent.name != "spark")
