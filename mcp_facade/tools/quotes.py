"""The quote tools, in the order an agent meets them. Docstrings are product text: an agent reads them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cpq import catalog
from cpq.access import Permission
from cpq.db import Tx
from cpq.views import CatalogPage, ProductDetail
from mcp_facade.arguments import LIMIT_DEFAULT, Flag, Identifier, Ignored, Limit, Page, SearchText, capped
from mcp_facade.registry import tool


@tool(title="Search the catalogue", toolset="quotes", needs=Permission.READ)
def catalog_search(
    tx: Tx,
    *,
    query: Annotated[
        SearchText,
        Field(
            description="Words in any order, a SKU or a model; the last word may be unfinished. `pro plan`, `QMB30`."
        ),
    ] = None,
    category: Annotated[
        SearchText, Field(description="Only products of this category, for example `saas` or `compressors`.")
    ] = None,
    active_only: Annotated[Flag, Field(description="Leave out products that are no longer sold.")] = True,
    limit: Limit = LIMIT_DEFAULT,
    page: Page = 1,
    include_relationships: Annotated[  # noqa: ARG001 - the contract accepts and ignores it
        Ignored, Field(description="Accepted and ignored; use catalog_get.")
    ] = None,
) -> CatalogPage:
    """Find products to quote. Start here: every quote line needs a product id from this search.

    Give `query`, `category`, or both. Exact codes come first, then products whose name has all words, then the rest;
    small typing errors are forgiven. A category alone lists all of it. `pagination.total` is the true number of hits.
    Prices are not listed here; `catalog_get` has them. An empty result is not an error: `hint` says what to try next.
    """
    return catalog.search(
        tx, query=query, category_id=category, active_only=active_only, limit=capped(limit), page=page
    )


@tool(title="Get a product", toolset="quotes", needs=Permission.READ, subject="product_id")
def catalog_get(
    tx: Tx,
    *,
    product_id: Annotated[Identifier, Field(description="The `id` of a product from catalog_search.")],
    include_relationships: Annotated[
        Flag,
        Field(description="Also return related products, configurable options, and the rules between options."),
    ] = False,
) -> ProductDetail:
    """Read one product in full: specs with units, attributes, and its list prices by price book and currency.

    Ask with `include_relationships` before quoting a `configurable` product or a `bundle`: it lists the options that a
    line's attributes may set, what the product requires or excludes, and a bundle's components. List prices are for
    orientation; what a customer pays is computed by quote_price.
    """
    return catalog.get(tx, product_id, include_relationships=include_relationships)


TOOLS = (catalog_search, catalog_get)
