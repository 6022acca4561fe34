"""Derivatives of dynamics: one algorithm per file."""
