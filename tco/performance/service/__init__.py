"""Service: simulated engines under arriving requests, and the promises that they keep."""
