"""What everything stands on: units, formulas, the trace, where a number comes from."""
