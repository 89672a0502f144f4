"""Tables, CSV, JSON and explanations: results as data in, text out."""
