"""Tests of the public interface as a whole."""
