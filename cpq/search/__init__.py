"""Finding text: how words are read, compared and ranked."""
