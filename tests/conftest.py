"""No test is timed: on a loaded machine hypothesis must not fail an example for having been slow."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
