"""The rules: every piece of meaning, one file per kind of value."""
