"""Reading with all options in one call, and errors as facts."""

from dataclasses import fields

import pytest

from skpml.datasets import read_as_table
from skpml.tables import Columns, Dialect, TableError, read_table

COLUMNS = {field.name for field in fields(Columns)}
DIALECT = {"encoding", "delimiter", "quote", "decimal"}


def read(path, **options):
    """A table, with the names of columns and the parts of the dialect as options."""
    columns = Columns(**{name: options.pop(name) for name in COLUMNS & set(options)})
    dialect = Dialect(**{name: options.pop(name) for name in DIALECT & set(options)})
    reader = read_table if "labeled" in options or "truth" in options else read_as_table
    return reader(path, columns=columns, dialect=dialect, **options)


def refused(call, **facts):
    """The error of a call: one line that begins with the file, and the facts as attributes."""
    with pytest.raises(TableError) as caught:
        call()
    error = caught.value
    assert {name: getattr(error, name) for name in facts} == facts, str(error)
    assert "\n" not in str(error)
    assert error.path is None or str(error).startswith(str(error.path))
    return error


def parquet(path, **columns):
    """A Parquet file of some columns, in groups of two rows."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path, row_group_size=2)
    return path
