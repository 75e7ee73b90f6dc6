"""Products, prices and accounts as values: validation of rows, and the words that find a product."""
