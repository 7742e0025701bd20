"""PML-ND: disambiguation guided by negative labels and noise."""

from skpml.baselines._pml_nd.estimator import PMLND

__all__ = ["PMLND"]
