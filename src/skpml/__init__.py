"""scikit-pml: learning from candidate labels."""

__version__ = "0.1.0.dev0"
