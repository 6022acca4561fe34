"""Shared by several algorithms: articulated bodies, dual rows, cluster nodes, the proximal iteration."""
