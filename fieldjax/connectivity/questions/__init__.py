"""Index-space questions about a table, answered on the host."""
