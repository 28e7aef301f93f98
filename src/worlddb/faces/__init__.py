"""Faces: how WorldDB is reached from outside. The only room that reads environment and argv."""
