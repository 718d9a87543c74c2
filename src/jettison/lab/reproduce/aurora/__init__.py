"""Load Shedding in a Data Stream Manager (VLDB 2003): figures 9 to 12, the planners behind them, and a run on Spark."""
