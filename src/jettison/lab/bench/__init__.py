"""Benchmarks: ratios against plain Spark and the baselines, both sides measured in one run, alternating."""
