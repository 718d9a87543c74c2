"""Groups and keys: what the rows of one window have in common, and which of them its answer can do without.

Everything here is numpy on counts: no engine, no clock, no randomness of its own.

| file | idea |
|---|---|
| `concept_drop.py`, `join_drop.py` | the policies |
| `group_setting.py` | what a plan says about groups, and what that means for rows |
| `concepts.py` | what a concept is, how far two lie apart, and the rows that an accuracy asks for |
| `allocation.py` | how many rows may be kept, which promise gives way, and how rows are divided among groups |
| `window_rates.py` | keep fractions from a window's own counts alone: what is unknown is kept |
| `join_rates.py` | keep fractions for both sides of a join |
| `group_books.py` | what both policies share: what a running query has shown, by drop point |
| `pane_book.py`, `window_tally.py` | the same by pane, and of one pane |
| `group_keys.py` | one number for a group in a pane, and how values are looked up by key |
"""
