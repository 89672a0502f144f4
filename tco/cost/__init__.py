"""Pricing, supplier rebates, site and finance."""
