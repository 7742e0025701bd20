"""PML-fp and PML-lc: ranking with confidences, told apart by feature prototypes or by label correlation."""

from skpml.baselines.pml_fp.estimator import PMLFP, PMLLC

__all__ = ["PMLFP", "PMLLC"]
