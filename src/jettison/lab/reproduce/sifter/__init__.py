"""Compact shedding filters (ICDE 2007): figures 4 to 10, and what this implementation promises on top."""
