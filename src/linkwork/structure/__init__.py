"""Symbolic analysis of a mechanism, before any arithmetic: elimination orders, loop roots, clusters."""
