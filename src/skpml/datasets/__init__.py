"""Data sets with candidate labels: loading by name, reading and writing files, describing them."""

from skpml.datasets._checksum import content_checksum
from skpml.datasets._digits import load_digits_attributes
from skpml.datasets._errors import DatasetFormatError
from skpml.datasets._files import read_dataset, write_dataset
from skpml.datasets._folder import DatasetEntry, data_home, list_datasets
from skpml.datasets._formats.arff_reading import read_arff
from skpml.datasets._formats.arff_writing import write_arff
from skpml.datasets._formats.matlab import read_mat, write_mat
from skpml.datasets._formats.npz import read_npz, write_npz
from skpml.datasets._loading import load_dataset
from skpml.datasets._openml import fetch_dataset
from skpml.datasets._partial_dataset import PartialDataset
from skpml.datasets._registry import REGISTRY, DatasetFacts
from skpml.datasets._statistics import DatasetStatistics
from skpml.tables._csv_files import read_csv, write_csv
from skpml.tables._parquet_files import read_parquet, write_parquet

__all__ = [
    "REGISTRY",
    "DatasetEntry",
    "DatasetFacts",
    "DatasetFormatError",
    "DatasetStatistics",
    "PartialDataset",
    "content_checksum",
    "data_home",
    "fetch_dataset",
    "list_datasets",
    "load_dataset",
    "load_digits_attributes",
    "read_arff",
    "read_csv",
    "read_dataset",
    "read_mat",
    "read_npz",
    "read_parquet",
    "write_arff",
    "write_csv",
    "write_dataset",
    "write_mat",
    "write_npz",
    "write_parquet",
]
