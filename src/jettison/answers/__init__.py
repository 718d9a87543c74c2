"""Answers over rows that were shed: formulas with bounds, and estimates for what is missing."""
