"""One time step: accelerations, contacts, integrators, projection, and its energy balance."""
