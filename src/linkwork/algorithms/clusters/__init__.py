"""Dynamics of mechanisms whose local loops are resolved inside the recursion."""
