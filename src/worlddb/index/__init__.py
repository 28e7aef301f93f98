"""Derived state: what can be dropped and built again from nodes, edges and journal."""
