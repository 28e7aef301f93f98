"""Properties: random histories and questions, held against a naive model of the engine."""
