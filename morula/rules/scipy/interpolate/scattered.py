"""Rules of data at scattered points."""
