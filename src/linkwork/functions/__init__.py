"""Factories that turn a model into functions of its dynamics, and the results of these."""
