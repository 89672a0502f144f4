"""A study of many cases: read from a file, cut into partitions, and run here or on a cluster.

`study` reads it; `job` says where each case lies, and makes a partition a table of what `cases`
come to; `run` writes tables as files that are whole or not there, and walks the numbers that are
missing; `work` hands them to workers.
"""
