"""Differences between results, baselines, and what caused a change."""
