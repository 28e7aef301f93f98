"""Embedders behind one protocol, and the HTTP client for model endpoints."""
