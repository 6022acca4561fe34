"""What can be known of a mechanism before any arithmetic: elimination orders, loop roots, clusters."""
