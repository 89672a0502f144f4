"""One scenario in, one result out."""
