"""Concepts: what the rows of one window have in common, and which of them its answer can do without.

One idea a file. Everything here is numpy on counts: no engine, no clock, no randomness of its own.

| file | idea |
|---|---|
| `concepts.py` | what a concept is for a scalar, a grouped aggregate and a join, and the rows that an accuracy asks for |
| `allocation.py` | how a number of rows is divided among groups |
| `tally.py` | counts of a window's own groups, in bounded memory |
| `book.py` | the open panes of a drop point: batches of counts in, tallies out, shifts when panes close |
| `keys.py` | one number for a group in a pane |
| `obey.py` | what a `GroupDrop` says about rows |
| `strict.py` | keep fractions from those counts alone: what is unknown is kept |
| `promises.py` | which promise gives way when latency, rows and accuracy cannot all be kept |
| `distance.py` | how far two windows' concepts lie apart |
| `borrow.py` | estimates for groups with few kept rows, borrowed from earlier windows and neighbours |
| `joins.py` | keep fractions for both sides of a join, and its count and sum with bounds |
"""
