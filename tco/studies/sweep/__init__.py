"""A study over many cases: read from a file, cut into partitions of which each is a function of its number, and run here or on a cluster.

Case number -> setting and place in it (`layout`); a partition -> a table (`cases`, `partition`), whoever computes it; a table -> a file
that is whole or is not there (`folder`); `run` walks the numbers that are missing, `cluster` hands them to workers.
"""
