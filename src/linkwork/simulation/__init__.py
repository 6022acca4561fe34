"""States and their motion in time: closing loops, consistent velocities, integrators, rollouts."""
