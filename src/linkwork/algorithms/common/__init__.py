"""What several algorithms share: articulated bodies, dual rows, cluster nodes, the proximal iteration."""
