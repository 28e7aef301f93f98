"""Faces: command line, MCP, REST and clients. The only room that reads the environment and argv."""
