"""The console: web pages where sales managers review and decide approval requests. An edge: it only translates."""
