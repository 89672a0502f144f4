"""Training: the plan space, one step of a plan as formulas, its memory, and the search among a
million plans.
"""
