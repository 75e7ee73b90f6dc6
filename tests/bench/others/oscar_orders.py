"""django-oscar: a basket of so many lines with an offer, placed as an order and stored. Run by its own environment."""

import importlib
import json
import sys
import time
import warnings
from decimal import Decimal
from typing import Any

import django
import oscar.defaults
from django.conf import settings
from django.core.management import call_command

warnings.simplefilter("ignore")
FOLDER, SIZES = sys.argv[1], json.loads(sys.argv[2])
PRODUCTS = 1000
CONTRIB = ("auth", "contenttypes", "sessions", "sites", "messages", "flatpages")
APPS = {
    "": "analytics checkout address shipping catalogue communication partner basket payment offer order customer "
    "search voucher wishlists dashboard",
    "catalogue.": "reviews",
    "dashboard.": "reports users orders catalogue offers partners pages ranges reviews vouchers communications "
    "shipping",
}
OTHERS = ("haystack", "treebeard", "django_tables2", "widget_tweaks")


def config_of(app: str) -> str:
    """The one class of an app that Django is to load."""
    module = importlib.import_module(f"{app}.apps")
    [*_, name] = [name for name, value in vars(module).items() if type(value) is type and "label" in dir(value)]
    return f"{app}.apps.{name}"


def configured() -> None:
    """The settings of its sandbox, as far as orders need them, on a SQLite file."""
    apps = [config_of(f"oscar.apps.{folder}{name}") for folder, names in APPS.items() for name in names.split()]
    defaults = {name: value for name, value in vars(oscar.defaults).items() if name.startswith("OSCAR_")}
    settings.configure(
        **defaults,
        SECRET_KEY="bench",
        USE_TZ=True,
        SITE_ID=1,
        DEBUG=False,
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{FOLDER}/oscar.sqlite3"}},
        HAYSTACK_CONNECTIONS={"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}},
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
        INSTALLED_APPS=[*(f"django.contrib.{name}" for name in CONTRIB), "oscar.config.Shop", *apps, *OTHERS],
    )
    django.setup()
    call_command("migrate", verbosity=0)


def fill() -> list[Any]:
    from oscar.core.loading import get_model  # noqa: PLC0415 # Models can only be imported when Django is set up.

    kind = get_model("catalogue", "ProductClass").objects.create(name="c", track_stock=False, requires_shipping=False)
    partner = get_model("partner", "Partner").objects.create(name="p")
    products = []
    for number in range(PRODUCTS):
        product = get_model("catalogue", "Product").objects.create(title=f"P{number}", product_class=kind)
        price = {"partner_sku": str(number), "price": Decimal(10 + number), "price_currency": "USD"}
        get_model("partner", "StockRecord").objects.create(product=product, partner=partner, **price)
        products.append(product)
    everything = get_model("offer", "Range").objects.create(name="all", includes_all_products=True)
    condition = get_model("offer", "Condition").objects.create(range=everything, type="Count", value=5)
    benefit = get_model("offer", "Benefit").objects.create(range=everything, type="Percentage", value=5)
    offer = {"name": "five", "condition": condition, "benefit": benefit, "offer_type": "Site"}
    get_model("offer", "ConditionalOffer").objects.create(**offer)
    return products


def order(products: list[Any], count: int) -> None:
    from django.db import transaction  # noqa: PLC0415
    from oscar.core.loading import get_class, get_model  # noqa: PLC0415

    with transaction.atomic():
        basket = get_model("basket", "Basket").objects.create()
        basket.strategy = get_class("partner.strategy", "Default")()
        for number in range(count):
            basket.add_product(products[number % PRODUCTS], quantity=number % 9 + 1)
        get_class("offer.applicator", "Applicator")().apply(basket)
        shipping = get_class("shipping.methods", "Free")()
        charge = shipping.calculate(basket)
        total = get_class("checkout.calculators", "OrderTotalCalculator")().calculate(basket, charge)
        placed = get_class("order.utils", "OrderCreator")().place_order(
            basket, total, shipping_method=shipping, shipping_charge=charge, order_number=f"{basket.id}"
        )
        basket.submit()
    assert placed.lines.count() == count


def main() -> None:
    configured()
    products = fill()

    def once(count: int) -> float:
        began = time.process_time()
        order(products, count)
        return time.process_time() - began

    once(1)
    print(json.dumps({str(count): min(once(count) for _ in range(rounds)) * 1000 for count, rounds in SIZES}))


main()
