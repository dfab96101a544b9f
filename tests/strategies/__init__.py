"""Random meshes, fields and expressions, with an independent meaning for each: what property tests draw from."""

from tests.strategies.cases import Case, cases, field_domains, parts_of
from tests.strategies.expressions import FORMS, Expression, Form, expressions
from tests.strategies.meshes import OFFSETS, Table, World, entries, numbers, spans, tables, worlds
from tests.strategies.naive import Absent, Broken, Element, Naive, NaiveTable, Refused

__all__ = [
    "FORMS",
    "OFFSETS",
    "Absent",
    "Broken",
    "Case",
    "Element",
    "Expression",
    "Form",
    "Naive",
    "NaiveTable",
    "Refused",
    "Table",
    "World",
    "cases",
    "entries",
    "expressions",
    "field_domains",
    "numbers",
    "parts_of",
    "spans",
    "tables",
    "worlds",
]
