"""The workbook of `tco export`: a spreadsheet that recalculates, written from the trace."""
