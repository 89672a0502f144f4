"""Predictions held against published measurements: reading, predicting, scoring."""
