"""PURE. What the web toolset decides without looking outside: addresses, pages, passages, questions, links, briefs."""
