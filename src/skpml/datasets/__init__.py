"""Data sets with candidate labels: load them by name, read and write files, compute statistics."""

# ruff: noqa: F401, I001 -- names for other packages that are not public
from skpml.datasets._partial_dataset import DatasetStatistics, PartialDataset
from skpml.datasets._registry import REGISTRY, DatasetFacts
from skpml.datasets._npz import holds_labels, read_npz, write_npz
from skpml.datasets._matlab import read_mat, write_mat
from skpml.datasets._arff import read_arff, write_arff
from skpml.datasets._files import READERS, WRITERS, read_dataset, to_dataset, write_dataset
from skpml.datasets._files import read_as_table, reader_options, write_cleaned_copy
from skpml.datasets._digits import DIGITS, load_digits_attributes, write_example
from skpml.datasets._loading import content_checksum, data_home, fetch_dataset, list_datasets, load_dataset
from skpml.datasets._loading import present_files, split_configuration

__all__ = [
    "REGISTRY",
    "DatasetFacts",
    "DatasetStatistics",
    "PartialDataset",
    "content_checksum",
    "data_home",
    "fetch_dataset",
    "list_datasets",
    "load_dataset",
    "load_digits_attributes",
    "read_arff",
    "read_as_table",
    "read_dataset",
    "read_mat",
    "read_npz",
    "write_arff",
    "write_cleaned_copy",
    "write_dataset",
    "write_example",
    "write_mat",
    "write_npz",
]
