"""Discrete steps with their derivatives, and linear-quadratic problems over a horizon."""
