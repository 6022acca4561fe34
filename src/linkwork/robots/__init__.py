"""Robots that need no file of the user: parametric mechanisms, and those installed on this machine."""
