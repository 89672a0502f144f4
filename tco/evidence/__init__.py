"""Claims, published figures and forecasts, each beside what the program computes."""
