"""Measure your own machine: products, attention, memory and collectives, as measured rows."""
