"""Tests, and the modules that they share."""
