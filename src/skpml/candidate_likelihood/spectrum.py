"""The eigenbasis of features, which other parts of the library use too."""

from skpml.spectrum import Spectrum as Spectrum
from skpml.spectrum import spectrum_of as spectrum_of
