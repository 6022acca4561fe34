"""Robot files: URDF, URDF+, MJCF, SDF and USD, and what they say of joints, loops and looks."""
