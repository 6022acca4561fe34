"""Robots without a file of yours: parametric mechanisms, and those installed on this machine."""
