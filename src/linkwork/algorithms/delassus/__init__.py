"""The Delassus matrix J M^-1 J^T, the inverse of the operational-space inertia."""
