"""The page of `tco report`: one file with figures, tables and a what-if that recalculates, written
from the trace.
"""
