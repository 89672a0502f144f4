"""Measuring a machine of one's own: products, attention, memory and collectives, as rows that
predictions are held against.
"""
