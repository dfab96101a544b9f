"""Graphs as JAX programs, and the programs that are kept."""
