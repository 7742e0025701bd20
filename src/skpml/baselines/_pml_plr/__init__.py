"""PML-PLR: partial multi-label learning by pseudo-label reconstruction."""

from skpml.baselines._pml_plr.estimator import PMLPLR

__all__ = ["PMLPLR"]
