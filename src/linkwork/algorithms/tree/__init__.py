"""Kinematics and dynamics of trees without constraints."""
