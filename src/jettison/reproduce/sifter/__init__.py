"""Compact shedding filters (ICDE 2007): figures 4 to 10, and what this implementation promises on top."""

from jettison.reproduce.sifter.study import run

__all__ = ["run"]
