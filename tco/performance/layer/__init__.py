"""One layer: the operators of a pass, which serving and training share, on one machine."""
