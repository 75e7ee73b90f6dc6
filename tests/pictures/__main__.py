"""Makes the pictures of the console again, from the sample quotes at a fixed moment: `python -m tests.pictures`."""

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from cpq.base.settings import read_settings
from cpq.cli import sample_quotes
from tests.support import chromium, engine
from tests.support.console import Console, send, serving

HERE = Path(__file__).parent
POLICIES = HERE.parent.parent / "policies"
WIDE = {"width": 1100, "height": 760}
PHONE = {"width": 390, "height": 844}
TALL, GAP = 1000, 20


def main() -> None:
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        settings = read_settings({}, home=Path(home), policies_dir=with_chains(Path(home) / "policies"))
        engine.fill_with_sample(settings)
        sample_quotes.fill(settings, engine.TODAY)
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=chromium.FLAGS)
        with serving(settings, engine.StillEffects(engine.TODAY)) as console:
            take_all(console, browser)
        browser.close()
    place_side_by_side()


def with_chains(folder: Path) -> Path:
    """The shipped policies, but every role on the way is asked, so that the picture of a chain has several."""
    shutil.copytree(POLICIES, folder)
    approvals = folder / "approvals.yaml"
    shipped = approvals.read_text(encoding="utf-8")
    assert "ask: highest" in shipped
    approvals.write_text(shipped.replace("ask: highest", "ask: each"), encoding="utf-8")
    return folder


def take_all(console: Console, browser: Browser) -> None:
    dana = signed_in(console, browser, "dana")
    dana.goto(f"{console.url}/console/queue")
    keep(dana, "queue")
    asked = waiting_of(console, "acct_lonestar_004")
    send(console, console.signed_in("lee"), asked, "approve", "They have paid on time for years.")
    dana.goto(f"{console.url}/console/quotes/{asked}")
    keep(dana, "quote")
    phone = signed_in(console, browser, "dana", is_phone=True)
    phone.goto(f"{console.url}/console/quotes/{asked}")
    keep(phone, "phone")
    dana.get_by_role("link", name="Approve…").click()
    dana.get_by_label("Comment").fill("The margin holds.")
    dana.evaluate("scrollTo(0, 0)")
    keep(dana, "confirmation", full_page=False)
    rosa = signed_in(console, browser, "rosa")
    rosa.goto(f"{console.url}/console/quotes/new?account_id=acct_groeb_002&product_id=prod_qvs40")
    keep(rosa, "line")


def signed_in(console: Console, browser: Browser, name: str, *, is_phone: bool = False) -> Page:
    """A window of this person, with the same zone and language on every machine."""
    look = {"timezone_id": "Europe/Berlin", "locale": "en-US", "reduced_motion": "reduce"}
    context = browser.new_context(viewport=PHONE if is_phone else WIDE, is_mobile=is_phone, **look)  # type: ignore[arg-type] # Plain words.
    page = context.new_page()
    page.goto(console.link(name))
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Queue").wait_for()
    return page


def waiting_of(console: Console, account_id: str) -> str:
    """The quote of this account that waits for approval."""
    found = console.tools("approval_pending", limit=100)["items"]
    ids = {
        console.tools("quote_get", quote_id=one["quote_id"])["quote"]["account_id"]: one["quote_id"] for one in found
    }
    return str(ids[account_id])


def keep(page: Page, name: str, *, full_page: bool = True) -> None:
    """Store what the page shows as a small PNG: with 256 colours of its own."""
    page.wait_for_load_state("load")
    page.evaluate("document.fonts.ready.then(() => true)")
    write(Image.open(io.BytesIO(page.screenshot(full_page=full_page, caret="hide"))), name)


def place_side_by_side() -> None:
    """The picture of README: who decides on the left, what the customer gets on the right."""
    pictures = [Image.open(HERE / f"{name}.png").convert("RGB") for name in ("quote", "quotation")]
    pictures = [one.resize((round(one.width * TALL / one.height), TALL)) for one in pictures]
    both = Image.new("RGB", (sum(one.width for one in pictures) + 3 * GAP, TALL + 2 * GAP), "#dfe4ea")
    left = GAP
    for one in pictures:
        both.paste(one, (left, GAP))
        left += one.width + GAP
    write(both, "overview")


def write(picture: Image.Image, name: str) -> None:
    picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(HERE / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
