"""Scale-up scopes, slices, links, collectives and the algorithms of their libraries."""
