"""The same mechanism in fewer operations: lumped inertias, link frames, the origin of a free base."""
