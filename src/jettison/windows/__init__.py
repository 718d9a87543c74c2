"""Windows of time as integers: which rows a window needs, which windows to drop, and marks that never change.

Pure. Times are integers throughout (microseconds on Spark, any unit in tests), so that edges are exact.
"""

from jettison.windows.decide import CoinPerBatch, DecisionState, Runs
from jettison.windows.grid import Grid
from jettison.windows.needs import Pipeline

__all__ = ["CoinPerBatch", "DecisionState", "Grid", "Pipeline", "Runs"]
