"""Rows by priority: predicates with weights, and what weighs least goes first."""
