"""Operators, collectives, plans and serving."""
