"""Figures: a function for each, which takes results as data and draws them with matplotlib."""
