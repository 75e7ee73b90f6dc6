"""The reader's time zone: set by the browser, chosen on a page, or UTC; every time on a page names it."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.base.errors import bad_field
from cpq.console.cookies import ZONE_NAME, known_zones, zone_of
from cpq.console.visit import Visit

_YEAR_SECONDS = 365 * 24 * 3600


def show(visit: Visit) -> Response:
    def work(_tx: Tx) -> Answer:
        return {}

    visit.read("time_zone", work)
    return visit.page("time_zone.html", zones=sorted(known_zones()), chosen=zone_of(visit.request).key)


def choose(visit: Visit) -> Response:
    """Remember the zone for a year, in a cookie of this browser."""
    name = visit.form.get("zone", "")
    if name not in known_zones():
        raise bad_field("/zone", "Choose a time zone of the list, such as Europe/Berlin.")
    response = RedirectResponse("/console/queue", 303)
    # The script of the pages reads it, to set it only where it is missing.
    response.set_cookie(
        ZONE_NAME, name, max_age=_YEAR_SECONDS, path="/console", samesite="lax", secure=visit.site.cookies.is_secure
    )
    return response
