"""A single operator behind a queue whose rows cost what their key costs: the world of the load-aware shedders."""
