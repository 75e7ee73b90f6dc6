"""The tools, one file per toolset. Docstrings are product text: an agent reads them."""
