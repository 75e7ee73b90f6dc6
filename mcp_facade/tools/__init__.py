"""The tools, one file per toolset. Docstrings are product text: agents read them."""
