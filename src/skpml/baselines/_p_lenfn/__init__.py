"""P-LENFN: labels enhanced by near and far rows, and a linear classifier guided by a small network."""

from skpml.baselines._p_lenfn.estimator import PLENFN

__all__ = ["PLENFN"]
