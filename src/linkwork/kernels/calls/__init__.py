"""Compiled code as functions: arrays in, arrays out, threads, rollouts, interrupts."""
