"""What one chip reaches: formats, rates, memory, kernels."""
