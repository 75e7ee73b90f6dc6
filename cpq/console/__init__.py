"""The console: pages where sales managers see what waits, understand it, and decide. An edge: it only translates."""
