"""The web as cited evidence: pages are fetched safely, read into passages, searched by the core, told as a brief."""
