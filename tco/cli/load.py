"""Loading what commands share: the catalogue with its overlays, and evaluated scenarios."""

from tco.studies.asking import HEADLINE, catalogue_for, evaluate_all

__all__ = ["HEADLINE", "catalogue_for", "evaluate_all"]
