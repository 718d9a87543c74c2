"""Concept-driven load shedding (Katsipoulakis, Labrinidis, Chrysanthis, 2018): its experiments and its claims."""
