"""Windows of time as integers: which rows a window needs, which windows to drop, and marks that never change.

Pure. Times are integers throughout (microseconds on Spark, any unit in tests), so that edges are exact.
"""

from jettison.policies.window.window_choice import DecisionState, Runs
from jettison.policies.window.window_grid import Grid
from jettison.policies.window.window_needs import Pipeline

__all__ = ["DecisionState", "Grid", "Pipeline", "Runs"]
