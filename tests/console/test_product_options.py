"""The configurator of a product: reasons, conflicts, repairs and prices, without JavaScript, and into a quote."""

import html
import re

import httpx2

from tests.console.test_whole_deal import created, done, fill
from tests.support.console import Console
from tests.support.quotes import ACME, new_quote, stored

QVS60 = "/console/products/prod_qvs60/configure"


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page.partition("<main")[2])))


def value(page: str, option: str, value_: str) -> str:
    """The label of one value: its classes and title."""
    found = re.search(
        rf'<label class="(pick[^"]*)"([^>]*)><input type="radio" name="option.{option}"[^>]* value="{value_}"([^>]*)>',
        page,
    )
    assert found, f"{option} has no {value_}"
    return html.unescape(" ".join(found.groups()))


def links(page: str, text: str) -> list[str]:
    return [
        html.unescape(address) for address in re.findall(rf'<a class="button[^"]*" href="([^"]*)">{text}</a>', page)
    ]


def prefilled(visitor: httpx2.Client, address: str) -> dict[str, str]:
    """The options that the form at an address shows as chosen, for `fill`."""
    page = visitor.get(address).text
    lists = re.findall(r'<select id="(option\.[^"]*)".*?</select>', page, re.DOTALL)
    chosen = {name: re.search(rf'<select id="{name}".*?value="([^"]*)" selected', page, re.DOTALL) for name in lists}
    return {name.replace(".", "__"): html.unescape(found[1]) for name, found in chosen.items() if found}


def test_a_conflict_is_explained_and_one_click_repairs_it(console: Console):
    rosa = console.signed_in("rosa", "sales_rep")
    before = stored(console.app)
    page = rosa.get(f"{QVS60}?account_id={ACME}&option.voltage=208&option.cooling=water").text
    assert "These choices cannot stand together." in page
    assert "On 208 V the drive cabinet needs the room of the water cooler, so only air cooling is offered." in text_of(
        page
    )
    assert "cooling: water → air" in text_of(page)
    first, second, *_ = links(page, "Use this one")
    repaired = rosa.get(first).text
    assert "Valid." in repaired
    assert re.search(r"[\d,]+\.\d\d USD", text_of(repaired))
    assert 'name="option.voltage" id="o2-1" value="208" checked' not in rosa.get(second).text
    assert re.search(r"[−+][\d,]+\.\d\d against the first", text_of(page))
    assert stored(console.app) == before


def test_a_value_that_is_not_possible_now_is_grey_and_says_why_on_hover_and_in_text(sqlite_console: Console):
    rosa = sqlite_console.signed_in("rosa", "sales_rep")
    page = rosa.get(f"{QVS60}?option.voltage=208").text
    water = value(page, "cooling", "water")
    assert water.startswith("pick out")
    assert "On 208 V the drive cabinet needs the room of the water cooler" in water
    assert "Possible if voltage changes." in water
    assert "disabled" not in water, "it can be chosen, and the repair is shown then"
    assert value(page, "cooling", "air").startswith("pick ")
    assert "out" not in value(page, "cooling", "air")
    assert "water : voltage='208': On 208 V the drive cabinet" in text_of(page)
    assert "With a customer the price is shown." in page
    assert "(no)" in text_of(page)
    assert "(false)" not in text_of(page)


def test_only_what_can_mend_a_conflict_is_grey_and_a_repair_shows_what_it_adds(sqlite_console: Console):
    rosa = sqlite_console.signed_in("rosa", "sales_rep")
    series = "/console/products/prod_qvs_series/configure"
    page = rosa.get(f"{series}?option.hp=150&option.voltage=208&option.cooling=air").text
    assert value(page, "voltage", "230").startswith("pick out")
    assert value(page, "dryer", "none").startswith("pick ")
    assert "out" not in value(page, "dryer", "none"), "no dryer mends the voltage"
    assert "voltage: 208 → 460 cfm: 748 dryer cfm: 800" in text_of(page)
    plain = rosa.get(series).text
    assert "Goes with it: " in text_of(plain)


def test_the_price_follows_the_choices_and_is_that_of_the_quote_line(console: Console):
    rosa = console.signed_in("rosa", "sales_rep")
    page = rosa.get(f"{QVS60}?account_id={ACME}&option.heat_recovery=true").text
    (take,) = links(page, "Take these options over")
    shown = re.search(r'class="price-now"><strong>([\d,.]+) USD', page)
    assert shown
    quote_id = created(fill(rosa, take, quantity="1", **prefilled(rosa, take)))
    line = console.tools("quote_get", quote_id=quote_id)["line_items"][0]
    assert line["attributes"]["heat_recovery"] is True
    assert f"{line['unit_price']:,.2f}" == shown[1]


def test_from_a_line_of_a_quote_and_back_into_it(console: Console):
    rosa = console.signed_in("rosa", "sales_rep")
    quote_id = new_quote(console.tools, line_items=[{"product_id": "prod_qvs60", "quantity": 2}])
    line = f"/console/quotes/{quote_id}/lines/{quote_id}-ql-1"
    form = rosa.get(line).text
    (there,) = re.findall(r'href="([^"]*/configure[^"]*)"', form)
    page = rosa.get(html.unescape(there)).text
    assert "Valid." in page
    changed = rosa.get(f"{html.unescape(there)}&option.voltage=208").text
    (take,) = links(changed, "Take these options over")
    done(rosa, take, quantity="2", **prefilled(rosa, take))
    assert console.tools("quote_get", quote_id=quote_id)["line_items"][0]["attributes"]["voltage"] == "208"


def test_what_no_option_takes_is_said_and_nothing_breaks(sqlite_console: Console):
    rosa = sqlite_console.signed_in("rosa", "sales_rep")
    odd = rosa.get(f"{QVS60}?option.voltage=%3Cb%3E&option.nonsense=1&option.psi=130")
    assert odd.status_code == 200
    assert "<b>" not in odd.text
    assert "There is no option 'nonsense'." in text_of(odd.text)
    plain = rosa.get("/console/products/prod_qmb30/configure")
    assert plain.status_code == 200
    assert rosa.get("/console/products/nothing/configure").status_code == 404
    assert rosa.get(f"{QVS60}?quote_id=Q-none").status_code == 404


def test_who_may_not_quote_gets_no_way_into_a_quote(sqlite_console: Console):
    reader: httpx2.Client = sqlite_console.signed_in("fiona", "finance")
    page = reader.get(f"{QVS60}?account_id={ACME}").text
    assert "Valid." in page
    assert links(page, "Take these options over") == []
