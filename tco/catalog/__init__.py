"""The catalogue: reads and checks `data/`."""

from tco.catalog.catalogue import Catalogue, Source, load_catalogue

__all__ = ["Catalogue", "Source", "load_catalogue"]
