"""Service: engines under requests that arrive as they do, iteration by iteration, and the promises
that they keep.
"""
