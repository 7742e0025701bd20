"""PML-fp and PML-lc: ranking with confidences, told apart by feature prototypes or by label correlation."""

from skpml.baselines._pml_fp.estimator import PMLFP, PMLLC

__all__ = ["PMLFP", "PMLLC"]
