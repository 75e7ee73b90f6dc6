"""The catalogue: products, prices and accounts, searched, read, imported and exported."""

from typing import TYPE_CHECKING

from cpq.base.late_modules import export_late

if TYPE_CHECKING:
    from cpq.base.row_files import columns_of, read_rows
    from cpq.services.catalog.accounts import get_account, search_accounts
    from cpq.services.catalog.importer import ImportReport, import_rows
    from cpq.services.catalog.views import get, search, summaries
    from cpq.services.catalog.word_index import with_most_words

export_late(__name__, __file__)

__all__ = [
    "ImportReport",
    "columns_of",
    "get",
    "get_account",
    "import_rows",
    "read_rows",
    "search",
    "search_accounts",
    "summaries",
    "with_most_words",
]
