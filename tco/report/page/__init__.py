"""The page of `tco report`: one file of figures, tables and a live what-if, from the trace."""
