"""`cpq import quotes --history` and `cpq search`, as an operator types them."""

import json
from pathlib import Path

import sqlalchemy as sa

from cpq.app import open_app
from cpq.config import read_settings
from cpq.schema import past_line, past_quote, search_vector

CSV = """id,customer,project,quoted_on,currency,outcome,quote_notes,category,description,quantity,unit_price,model
H-1,Toffee Ltd,Toffee line,2020-02-03,EUR,won,Kept,Puller,"Toffee puler, 3 HP",2,1200.50,TP3
H-1,,,,,,,Freight,"Freight, prepaid",1,,
H-2,Nougat Inc,Nougat line,2021-04-05,USD,lost,,Mixer,Nougat mixer,1,99,
"""


def rows_of(home: Path, table: sa.Table) -> list[sa.Row]:
    app = open_app(read_settings({}, home=home))
    with app.database.reading() as connection:
        found = list(connection.execute(sa.select(table)).all())
    app.close()
    return found
