"""Reference learners: the floor that a method should beat, and the ceiling.

The floor is an ordinary multi-label learner that treats every candidate as true: ridge regression, ML-kNN, LIFT or a
classifier chain. :class:`Oracle` trains any of them, or any classifier of scikit-learn, on true labels instead.
"""

from skpml.reference._chain import CandidateChain
from skpml.reference._lift import LIFT
from skpml.reference._ml_knn import MLKNN
from skpml.reference._oracle import Oracle
from skpml.reference._ridge import CandidateRidge

__all__ = ["LIFT", "MLKNN", "CandidateChain", "CandidateRidge", "Oracle"]
