"""Feature models: trees of features with groups and constraints, and what they are as a configurable product."""
