"""Derivatives of functions: dense Jacobians, and products of first and second order."""
