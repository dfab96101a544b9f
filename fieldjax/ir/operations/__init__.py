"""One home per operation: its types, domains, evaluation, derivatives and text."""
