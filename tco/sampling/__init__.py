"""What is asked of many results: states, differences, baselines."""
