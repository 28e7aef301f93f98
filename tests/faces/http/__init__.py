"""The HTTP server, on a real socket: in a thread of the tests, or as the command that users run."""
