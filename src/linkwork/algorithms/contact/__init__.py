"""Contact with friction: the laws of Signorini and Coulomb for velocities, without relaxation."""
