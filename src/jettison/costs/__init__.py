"""`load_aware`, all of it: what a row costs a function, learned while it runs, and which rows to drop by it."""
