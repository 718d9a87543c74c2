"""No test is timed: on a loaded machine hypothesis must not fail an example for having been slow."""

import os

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Every Java that a test starts, drivers and executors too, runs for seconds: the first compiler alone takes half as much
# CPU as both, and a garbage collection for each step by which the classes' memory grows takes a tenth of the time.
_BRIEF = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:NewRatio=1 -XX:MetaspaceSize=256m"
os.environ["JDK_JAVA_OPTIONS"] = _BRIEF
