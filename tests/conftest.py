"""What all tests share: none is timed, every Java is brief, the long files come first, some have to be asked for."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# On a loaded machine hypothesis must not fail an example for having been slow.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Every Java that a test starts, drivers and executors too, runs for seconds: the first compiler alone takes half as much
# CPU as both, and a garbage collection for each step by which the classes' memory grows takes a tenth of the time.
_BRIEF = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:NewRatio=1 -XX:MetaspaceSize=256m"
os.environ["JDK_JAVA_OPTIONS"] = _BRIEF

# A job in a shell's background ignores Ctrl-C, and so would all that the tests start and then interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_HERE = Path(__file__).parent
# Tests that download or start much, by the variable with which `make test-NAME` asks for them. Asked for, none may skip.
_APART = {name: f"JETTISON_TEST_{name.upper()}" for name in ("kafka", "cluster", "store", "delta")}
collect_ignore = [name for name, variable in _APART.items() if variable not in os.environ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """One line for all tests that nobody asked for."""
    where = [config.invocation_params.dir / str(arg).partition("::")[0] for arg in config.args]
    left_out = [name for name in collect_ignore if any(each in (_HERE / name).parents for each in where)]
    if left_out:
        terminalreporter.write_line(f"left out, to be run by: {', '.join(f'make test-{name}' for name in left_out)}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on Spark first: files go to the two processes whole, and short ones at the end leave neither waiting."""
    items.sort(key=lambda item: item.path.parent.name != "spark")
