"""Translation of a product catalogue that was exported from Salesforce."""
