"""The web as cited evidence: fetches pages safely, splits them into passages, searches them, and writes a brief."""
