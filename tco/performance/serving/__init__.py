"""Serving: operators, passes, plans, the closed loop of requests."""
