"""The store as a file: who may open it, write it at the same time, fill it up, or copy it."""
