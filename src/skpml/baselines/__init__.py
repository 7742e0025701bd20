"""Published methods for partial multi-label learning, each in a module of its own, beside PML-MA."""

from skpml.baselines.fbd_pml import FBDPML
from skpml.baselines.p_lenfn import PLENFN
from skpml.baselines.pamb import PAMB
from skpml.baselines.particle import PARTICLE
from skpml.baselines.pml_fp import PMLFP, PMLLC
from skpml.baselines.pml_lrs import PMLLRS
from skpml.baselines.pml_nd import PMLND
from skpml.baselines.pml_ni import PMLNI
from skpml.baselines.pml_plr import PMLPLR

__all__ = [
    "FBDPML",
    "PAMB",
    "PARTICLE",
    "PLENFN",
    "PMLFP",
    "PMLLC",
    "PMLLRS",
    "PMLND",
    "PMLNI",
    "PMLPLR",
]
