"""The simulated micro-batch engine and the baselines that run on it."""
