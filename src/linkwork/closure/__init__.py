"""Closed loops: assembling positions, consistent velocities, dependent joints, actuation."""
