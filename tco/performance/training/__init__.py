"""Training: the plan space, the step time and memory of a plan, and the search for the best."""
