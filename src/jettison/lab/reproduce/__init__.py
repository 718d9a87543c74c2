"""Reproductions: each paper's experiments as claims that this code checks. One package per paper."""
