"""Published methods for partial multi-label learning other than PML-MA."""

from skpml.baselines._capml import CAPML
from skpml.baselines._comes import COMES
from skpml.baselines._fbd_pml import FBDPML
from skpml.baselines._nlr import NLR
from skpml.baselines._p_lenfn import PLENFN
from skpml.baselines._pamb import PAMB
from skpml.baselines._particle import PARTICLE
from skpml.baselines._pml_fp import PMLFP, PMLLC
from skpml.baselines._pml_lrs import PMLLRS
from skpml.baselines._pml_nd import PMLND
from skpml.baselines._pml_ni import PMLNI
from skpml.baselines._pml_plr import PMLPLR
from skpml.baselines._schirn import Schirn

__all__ = [
    "CAPML",
    "COMES",
    "FBDPML",
    "NLR",
    "PAMB",
    "PARTICLE",
    "PLENFN",
    "PMLFP",
    "PMLLC",
    "PMLLRS",
    "PMLND",
    "PMLNI",
    "PMLPLR",
    "Schirn",
]
