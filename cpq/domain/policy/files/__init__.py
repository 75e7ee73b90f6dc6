"""Policy files: their YAML, their shapes, their problems, and the test cases beside them."""
