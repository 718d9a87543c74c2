"""Exact answers later for everything that was shed: `settlement` settles windows, `audited` holds answers against them."""
