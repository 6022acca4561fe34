"""Orders of elimination and, from counts, the choice of an algorithm."""
