"""Read labeled tables of many formats into arrays, and write copies with other labels."""

# ruff: noqa: F401, I001 -- names for other packages that are not public
from skpml.tables._errors import Argument, TableError, check_unpacked_size, message_of, parsing
from skpml.tables._errors import refuse_arguments, require_extra
from skpml.tables._columns import CANDIDATE_COLUMN, CANDIDATE_PREFIX, TRUTH_COLUMN, TRUTH_PREFIX, Columns
from skpml.tables._columns import check_file, check_known_suffix, find_repeated, format_names
from skpml.tables._columns import looks_like_labels, number_names, quote_text
from skpml.tables._dialect import Dialect, detect_dialect
from skpml.tables._rows import BadCell, Progress, Record, read_records, write_csv, write_rows
from skpml.tables._arrow import write_parquet
from skpml.tables._formats import TABLE_SUFFIXES, TEXT_SUFFIXES, Rows, open_rows
from skpml.tables._features import as_text_column, fit_text_features
from skpml.tables._features import read_arrays, read_embeddings, release_rows
from skpml.tables._mixed import ColumnFeatures
from skpml.tables._kinds import ColumnType, FeatureKind
from skpml.tables._table import LabelMatrix, Table, read_table
from skpml.tables._table import describe_unlabeled
from skpml.tables._tags import find_twins, fold_tag
from skpml.tables._profile import Profile, profile_table
from skpml.tables._copying import check_changes, check_suffix, clean_frame, write_cleaned
from skpml.tables._retagging import write_tags

__all__ = [
    "ColumnFeatures",
    "Columns",
    "Dialect",
    "Profile",
    "Table",
    "TableError",
    "clean_frame",
    "detect_dialect",
    "profile_table",
    "read_table",
    "write_cleaned",
]
