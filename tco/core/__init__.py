"""Package foundations: units, formulas, the trace and the provenance of numbers."""
