"""Robot files: URDF, URDF+, MJCF and SDF, and what they say of joints, loops and looks."""
