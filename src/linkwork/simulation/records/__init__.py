"""What a simulation leaves: trajectories, figures, files."""
