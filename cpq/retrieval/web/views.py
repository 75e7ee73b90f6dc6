"""What the web tools answer with."""

from __future__ import annotations

from datetime import datetime

from typing_extensions import TypedDict


class WebSource(TypedDict):
    number: int
    title: str
    url: str


class WebBrief(TypedDict):
    brief: str
    sources: list[WebSource]
    mode: str
    stop_reason: str
    chunks: int
    iterations: int
    urls_ingested: int
    total_ms: int


class WebPage(TypedDict):
    url: str
    title: str
    kind: str
    chunks: int
    tokens: int
    fetched_at: datetime
    checked_at: datetime
    warning: str | None
    failure: str | None


class WebStatus(TypedDict):
    text: str
    documents: int
    chunks: int
    tokens: int
    pages: list[WebPage]


class WebIngested(TypedDict):
    url: str
    outcome: str
    chunks: int
    tokens: int
    reason: str | None


class WebIngestReport(TypedDict):
    text: str
    pages: list[WebIngested]
    fetched: int
    unchanged: int
    failed: int
