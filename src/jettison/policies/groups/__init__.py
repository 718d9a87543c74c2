"""Groups and keys: what the rows of one window have in common, and which of them its answer can do without.

Everything here is numpy on counts: no engine, no clock, no randomness of its own.

| file | idea |
|---|---|
| `concept_drop.py`, `join_drop.py` | the policies |
| `group_setting.py` | what a plan says about groups, and what that means for rows |
| `concepts.py` | what a concept is for a grouped aggregate and a join, and the rows that an accuracy asks for |
| `allocation.py` | how a number of rows is divided among groups |
| `window_rates.py` | keep fractions from a window's own counts alone: what is unknown is kept |
| `promises.py` | which promise gives way when latency, rows and accuracy cannot all be kept |
| `join_rates.py` | keep fractions for both sides of a join |
| `group_books.py`, `pane_book.py`, `window_tally.py` | what a running query has shown: by drop point, by pane, one pane |
| `group_keys.py` | one number for a group in a pane, and how values are looked up by key |
| `distance.py` | how far two windows' concepts lie apart |
"""
