"""Contact with friction: Signorini's and Coulomb's laws at the level of velocities, without relaxation."""
