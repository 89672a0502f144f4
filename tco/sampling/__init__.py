"""Sampling of uncertain inputs: metric ranges, sensitivity and drivers of a metric."""
