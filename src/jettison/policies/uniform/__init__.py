"""Rows at random: the policy that needs to know nothing about the data."""
