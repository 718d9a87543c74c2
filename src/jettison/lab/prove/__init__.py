"""Jettison beside its rivals: the same stream, bound and machine, in turn."""
