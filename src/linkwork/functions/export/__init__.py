"""Functions for other tools: headers of C, acados, CasADi."""
