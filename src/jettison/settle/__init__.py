"""Exact answers later for everything that was shed."""
