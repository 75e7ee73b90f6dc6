"""Reports: how the business goes, in figures."""
