"""Load-aware shedding (Rivetti, Anceaume, Busnel, Querzoni, Sericola, 2016): its experiments and its claims."""

from __future__ import annotations

MOVED = {
    "fig4-straw-man": "the measure: 90 % was judged apart for a while",
    "fig7-span": "the measure: standard deviation for a while",
    "fig7-las-drops": "the bar, 0.99 at first, and the measure: with three standard errors",
    "fig9-": "the measure: median of 9 streams at first",
    "fig11-tweet-like-las": "the bar: 1.5 at first",
    "fig11-real-tweets-las": "the bar: 1.5 at first",
    "ours-sketch-enough": "the bar",
    "decision-and-update": "the measure: keys that were hashed already at first",
    "spark-overhead": "how slices are sized and batches alternate",
}
"""What was settled after a look at figures, by the beginning of a claim's id."""
