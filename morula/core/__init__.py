"""The core: Python and SSA. It knows no rule, no array, no number."""
