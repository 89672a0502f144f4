"""Several scenarios evaluated as asked, and what-ifs."""
