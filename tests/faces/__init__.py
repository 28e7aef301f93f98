"""The command line, driven as its users drive it: as a process with arguments, pipes and files."""
