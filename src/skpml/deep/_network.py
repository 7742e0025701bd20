"""The network that comes with the library, and networks as plain arrays. Needs PyTorch: imported by a fit only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from skpml.linalg import to_numpy

Factory = Callable[[int, int], torch.nn.Module]
State = dict[str, NDArray[Any]]


def perceptron(n_features: int, n_labels: int, *, hidden: Sequence[int], dropout: float) -> torch.nn.Module:
    """Fully connected layers with rectifiers between them; without hidden layers, a linear map."""
    widths = (n_features, *hidden)
    layers: list[torch.nn.Module] = []
    for before, after in pairwise(widths):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU(), torch.nn.Dropout(dropout)]
    return torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], n_labels))


class Shifted(torch.nn.Module):
    """A network whose logits start from one for each label: one that says 0 of every row says what holds on average."""

    def __init__(self, inner: torch.nn.Module, offset: torch.Tensor) -> None:
        super().__init__()
        self.inner = inner
        self.register_buffer("offset", offset)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.inner(X) + self.offset
        return logits


def build(factory: Factory, offset: torch.Tensor, X: torch.Tensor) -> Shifted:
    """A new network for rows X (n, d), where the rows are; what the factory returns is tried out on two of them."""
    n_labels = offset.shape[0]
    inner = factory(X.shape[1], n_labels)
    if not isinstance(inner, torch.nn.Module):
        raise TypeError(
            f"network must return a torch.nn.Module when called as network({X.shape[1]}, {n_labels}), got {inner!r}."
        )
    module = Shifted(inner, offset).to(device=X.device, dtype=X.dtype).eval()
    with torch.no_grad():
        shape = tuple(inner(X[:2]).shape)
    if shape != (len(X[:2]), n_labels):
        raise ValueError(
            f"network must give one logit for each of the {n_labels} labels, shape ({len(X[:2])}, {n_labels}) for "
            f"{len(X[:2])} rows, got {shape}."
        )
    return module


def to_state(module: torch.nn.Module) -> State:
    """Weights and other state by name, as arrays of their own."""
    return {name: np.array(to_numpy(value)) for name, value in module.state_dict().items()}


def load_state(module: torch.nn.Module, state: State) -> None:
    """Put stored arrays back into a network of the same make."""
    module.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in state.items()})
