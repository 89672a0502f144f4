"""Comparisons of scenarios: rankings, frontiers, regret, maps, break-evens."""
