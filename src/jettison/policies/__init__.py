"""Policies: each turns statistics and a budget into a drop plan. One mechanism per file."""

from jettison.policies.base import Policy
from jettison.policies.concept_drop import ConceptDrop
from jettison.policies.uniform_drop import UniformDrop
from jettison.policies.window_drop import WindowDrop

__all__ = ["ConceptDrop", "Policy", "UniformDrop", "WindowDrop"]
