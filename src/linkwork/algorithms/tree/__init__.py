"""Dynamics of trees without constraints: kinematics, inverse dynamics, mass matrix, forward dynamics, factorisation."""
