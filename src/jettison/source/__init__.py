"""Filtering at the source: what a producer runs before it sends. Needs numpy and nothing else."""

from jettison.source.producer import Decision, SifterFilter

__all__ = ["Decision", "SifterFilter"]
