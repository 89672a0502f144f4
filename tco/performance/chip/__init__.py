"""Performance of a single chip: number formats, rates, memory and kernels."""
