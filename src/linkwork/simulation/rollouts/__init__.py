"""Rollouts: a whole horizon for thousands of states in one native loop."""
