"""Networks, and their mini-batch training on the candidate likelihood, with early stopping on held-out rows.

Needs PyTorch: imported only by a fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from skpml.likelihood import log_likelihood
from skpml.linalg import to_numpy

Factory = Callable[[int, int], torch.nn.Module]
State = dict[str, NDArray[Any]]

# Rows of a forward pass without gradients.
_ROWS_AT_A_TIME = 4096


def perceptron(n_features: int, n_labels: int, *, hidden: Sequence[int], dropout: float) -> torch.nn.Module:
    """Build fully connected layers with rectifiers between them; without hidden layers, a linear map."""
    widths = (n_features, *hidden)
    layers: list[torch.nn.Module] = []
    for before, after in pairwise(widths):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU(), torch.nn.Dropout(dropout)]
    return torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], n_labels))


class Shifted(torch.nn.Module):
    """A network plus an offset per label: a network that returns 0 for every row predicts the average."""

    def __init__(self, inner: torch.nn.Module, offset: torch.Tensor) -> None:
        super().__init__()
        self.inner = inner
        self.register_buffer("offset", offset)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.inner(X) + self.offset
        return logits


def build(factory: Factory, offset: torch.Tensor, X: torch.Tensor) -> Shifted:
    """Build a network for rows X (n, d) on their device, and try it out on two of them."""
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
    """Copy the weights and other state into arrays, by name."""
    return {name: np.array(to_numpy(value)) for name, value in module.state_dict().items()}


def load_state(module: torch.nn.Module, state: State) -> None:
    """Copy stored arrays into a network of the same layers."""
    module.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in state.items()})


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Candidates (n, c) of some rows, noise rates (c), and whether each row with candidates has a true label."""

    candidates: torch.Tensor
    rates: torch.Tensor
    one_true: bool

    def __getitem__(self, rows: torch.Tensor) -> Labels:
        return Labels(candidates=self.candidates[rows], rates=self.rates, one_true=self.one_true)

    def log_likelihood(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the log-likelihood of each row (n)."""
        marked = (self.candidates > 0).any(dim=1, keepdim=True) if self.one_true else None
        found: torch.Tensor = log_likelihood(logits, self.rates, self.candidates, marked)
        return found


@dataclass(kw_only=True)
class Course:
    """Course of a training: mean log-likelihood of a row in each epoch, and the epoch (from 0) whose weights are kept."""

    training: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    best_epoch: int = 0
    converged: bool = False


@contextmanager
def own_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Seed PyTorch on the CPU and the device, and leave behind the state that was found.

    Layers draw their first weights and their dropout from PyTorch's own generators, which belong to the caller.
    """
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        # torch.manual_seed would seed every other GPU too.
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def logits_of(module: torch.nn.Module, X: torch.Tensor) -> torch.Tensor:
    """Return the logits of rows, without gradients and dropout."""
    module.eval()
    with torch.no_grad():
        return torch.cat([module(some) for some in torch.split(X, _ROWS_AT_A_TIME)])


def train(
    module: torch.nn.Module,
    X: torch.Tensor,
    labels: Labels,
    *,
    held: NDArray[np.intp],
    schedule: Any,
    random: np.random.RandomState,
) -> Course:
    """Maximize the mean log-likelihood less the penalty, in place; the weights of the best epoch are kept.

    The training never uses the ``held`` rows, which decide the best epoch; without any, the last epoch is kept. The
    method ``schedule`` has the learning rate, the sizes and the patience.
    """
    trained = np.setdiff1d(np.arange(X.shape[0]), held)
    rows = torch.as_tensor(held, device=X.device)
    X_held, labels_held = X[rows], labels[rows]
    # Weights and kernels are penalized, shifts and scales (vectors) are not. In Adam, unlike AdamW, the decay is the
    # gradient of the penalty.
    groups = [
        {"params": [p for p in module.parameters() if p.ndim > 1], "weight_decay": schedule.weight_decay},
        {"params": [p for p in module.parameters() if p.ndim <= 1]},
    ]
    # Fused: half the time of a step where layers are small.
    optimizer = torch.optim.Adam(groups, lr=schedule.learning_rate, fused=True)
    course = Course()
    best, best_weights = -np.inf, None
    for epoch in range(schedule.max_epochs):
        course.training.append(
            _epoch(module, optimizer, X, labels, random.permutation(trained), schedule.batch_size)
        )
        if not len(held):
            course.best_epoch = epoch
            continue
        value = float(labels_held.log_likelihood(logits_of(module, X_held)).mean())
        course.held_out.append(value)
        if value > best:
            best, best_weights, course.best_epoch = value, deepcopy(module.state_dict()), epoch
        elif epoch - course.best_epoch >= schedule.patience:
            course.converged = True
            break
    if best_weights is not None:
        module.load_state_dict(best_weights)
    return course


def _epoch(
    module: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    X: torch.Tensor,
    labels: Labels,
    order: NDArray[np.intp],
    batch_size: int,
) -> float:
    """One pass over the rows in the given order; their mean log-likelihood."""
    module.train()
    total = torch.zeros((), dtype=X.dtype, device=X.device)
    # Batches of equal size: a last batch of one row would be a wild step.
    for rows in torch.as_tensor(order, device=X.device).tensor_split(ceil(len(order) / batch_size)):
        optimizer.zero_grad(set_to_none=True)
        loss = -labels[rows].log_likelihood(module(X[rows])).mean()
        torch.autograd.backward(loss)
        optimizer.step()
        total -= loss.detach() * len(rows)
    return float(total) / len(order)
