"""PURE. The decisions of the web toolset: addresses, pages, passages, questions, links, briefs."""
