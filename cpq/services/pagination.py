"""Pages of long lists: the number of the page, and whether there are more."""

from __future__ import annotations

from typing_extensions import TypedDict


class Pagination(TypedDict):
    total: int
    page: int
    per_page: int
    has_more: bool


def pagination(total: int, page: int, per_page: int) -> Pagination:
    return {"total": total, "page": page, "per_page": per_page, "has_more": page * per_page < total}
