"""Trees of parts: bills, silicon, the scale-up fabric and the scale-out network."""
