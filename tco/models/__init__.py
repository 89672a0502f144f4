"""Architectures of models, read from their config.json: layers, attention, experts, products."""
