"""The choice of an algorithm, from operation counts and predicted times."""
