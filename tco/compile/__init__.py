"""A scenario as a program: built once from its trace, run for any number of values."""
