"""Run the solver of PML-MA on PyTorch tensors: the same code on a GPU.

`PMLMA` itself works on NumPy arrays. Its solver, `skpml.modal_alignment.solve`, works with the array library of its
inputs. So: scale and map the features, build the graph, move features and candidates to the device, solve, and copy the
result back. The example compares the result with that of NumPy.
"""

import numpy as np

from skpml.datasets import load_digits_attributes
from skpml.features import RangeScaler, RBFAnchors
from skpml.graph import neighbor_similarity
from skpml.modal_alignment import Weights, solve

data = load_digits_attributes()
scaled = RangeScaler().fit_transform(data.X)
mapped = RBFAnchors(n_anchors=300, random_state=0).fit_transform(scaled)
candidates = data.candidates.astype(mapped.dtype)
similarity = neighbor_similarity(scaled)

on_numpy = solve(mapped, candidates, similarity, weights=Weights())
print(f"NumPy: {on_numpy.n_iter} iterations, objective {on_numpy.history['objective'][-1]:.3f}")

try:
    import torch
except ImportError:
    print('PyTorch is not installed; pip install "scikit-pml[torch]" installs it.')
else:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    on_torch = solve(
        torch.as_tensor(np.ascontiguousarray(mapped), device=device),
        torch.as_tensor(candidates, device=device),
        similarity,  # stays a SciPy matrix: the solver moves it where it is needed
        weights=Weights(),
    )
    difference = np.abs(on_torch.pseudo_labels.cpu().numpy() - on_numpy.pseudo_labels).max()
    objective = on_torch.history["objective"][-1]
    print(f"PyTorch on {device}: {on_torch.n_iter} iterations, objective {objective:.3f}")
    print(f"Largest difference between the confidences: {difference:.1e}")
