"""Regressors, base parameters, and the identification of parameters from measured forces."""
