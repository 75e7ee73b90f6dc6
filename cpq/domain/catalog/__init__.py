"""Products, prices and accounts as values: what makes a row valid, and which words find a product."""
