"""DeepCandidateLikelihood: the estimator. PyTorch is imported only by a fit."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch, check_random_state

from skpml._docstrings import fill_docstring
from skpml._ordering import feature_order, label_order, row_order
from skpml._validation import check_device, is_count, is_number
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.features import RangeScaler, RBFAnchors, as_dense, default_n_anchors
from skpml.likelihood import (
    check_at_least_one,
    check_noise_rate,
    given_one,
    held_out_ridge,
    is_auto,
    posterior,
    sigmoid,
    to_probability,
)
from skpml.linalg import spectrum_of, to_numpy

if TYPE_CHECKING:
    import torch

    from skpml.deep._training import Factory

# Of the ridge regression that the noise rate is estimated from.
_MOST_ANCHORS = 700


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class DeepCandidateLikelihood(BasePMLClassifier):
    """Estimate the probability that each label is true, with networks that learn their features.

    The model is that of :class:`~skpml.CandidateLikelihood`: every true label is a candidate; a label that is not true is
    a candidate with probability ρ. With η the probability that a label is true,

        P(candidate) = η + (1 − η) ρ        P(true | candidate) = η / (η + (1 − η) ρ).

    Here the logits of η are the output of a network, trained by mini-batches to maximize

        mean over rows of log P(candidates | row) − (δ/2) Σ‖W‖².

    Each network has its own held-out rows, and keeps the weights of the epoch after which their candidates were most
    likely. The probabilities of several networks are averaged.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, default=(256, 256)
        Widths of the hidden layers; empty is a linear model.
    dropout : float, default=0.5
        Share of the units of a hidden layer that each training step ignores.
    weight_decay : float, default=1e-4
        Weight δ of the squared weights; shifts and scales are not penalized.
    learning_rate : float, default=1e-3
        Learning rate of Adam.
    batch_size : int, default=64
        Largest number of rows of a mini-batch.
    max_epochs : int, default=200
        Largest number of epochs of a training.
    patience : int, default=15
        A training ends after this many epochs without progress on the held-out rows.
    validation_fraction : float, default=0.2
        Share of the rows that a network holds out. With 0, every training runs for `max_epochs`.
    n_members : int, default=5
        Number of networks that are averaged.
    noise_rate : float, array of shape (n_labels,) or "auto", default="auto"
        Noise rate ρ, from 0 to 0.985. "auto" estimates it as :class:`~skpml.CandidateLikelihood` does, from the scores of
        ridge regressions without the row, or from those of one more network on its held-out rows, whichever predicts
        candidates better.
    at_least_one : bool or "auto", default="auto"
        Whether every row with candidates has a true label. "auto" trains the first network both ways, and compares how
        well its held-out rows rank their candidates.
    network : callable or None, default=None
        ``network(n_features, n_labels)`` returns a new ``torch.nn.Module`` that maps rows (n, n_features) to logits
        (n, n_labels), for example a convolutional network for images. It gets the features unscaled, in the precision of
        X; `hidden_layer_sizes` and `dropout` are not used. None is a network of these, on standardized features.
    threshold : float, "auto" or "non-candidates", default="auto"
        Labels with a probability above it are predicted; "auto" is 0.5.
    device : str or None, default=None
        PyTorch device, such as "cuda"; None is the CPU.
    %(on_empty)s
    random_state : int, RandomState or None, default=None
        Draws the held-out rows, the mini-batches, the first weights and the dropout. PyTorch's own generators are
        not changed. On a CPU, a seed gives identical results.

    Attributes
    ----------
    confidences_ : ndarray of shape (n_rows, n_labels)
        Probability that each candidate is true; 0 elsewhere.
    noise_rate_ : ndarray of shape (n_labels,)
        The given noise rates, or the estimate.
    at_least_one_ : bool
        Whether every row with candidates was assumed to have a true label.
    history_ : dict of ndarrays
        Of the first network, for each epoch: mean log-likelihood of a row in ``"training"`` and in ``"held_out"``.
    n_iter_ : int
        Number of epochs of the first network.
    converged_ : bool
        Whether every training ended because there was no more progress.
    states_ : list of dicts of ndarrays
        Weights of each network, by name.
    network_ : callable or None
        The given network.
    scaler_ : transformer or None
        Standardizes the features; None for a custom network.
    %(fitted)s

    Notes
    -----
    With n rows, w weights, m members and e epochs, a fit takes O(m e n w) time and memory for the rows, a few copies of
    the weights and, for the noise rate, n times at most 700 similarities. It computes in the precision of X: on a GPU,
    use float32. The order of rows, features and labels does not matter; with a custom network that holds for rows only,
    because it may depend on the positions of features.

    Examples
    --------
    %(example_data)s
    >>> from skpml.deep import DeepCandidateLikelihood
    >>> model = DeepCandidateLikelihood(hidden_layer_sizes=(32,), n_members=1, random_state=0)  # doctest: +SKIP
    >>> model.fit(X, candidates).predict_proba(X).shape  # doctest: +SKIP
    (300, 5)
    """

    hidden_layer_sizes: Sequence[int] = (256, 256)
    dropout: float = 0.5
    weight_decay: float = 1e-4
    learning_rate: float = 1e-3
    batch_size: int = 64
    max_epochs: int = 200
    patience: int = 15
    validation_fraction: float = 0.2
    n_members: int = 5
    noise_rate: Any = "auto"
    at_least_one: bool | str = "auto"
    network: Any = None
    threshold: float | str = "auto"
    device: str | None = None
    on_empty: str = "warn"
    random_state: Any = None

    _facts = MethodFacts(
        name="deep-candidate-likelihood",
        title="Deep candidate likelihood",
        kind="own",
        summary="candidate likelihood with networks that learn features from raw images and signals",
        confidences=True,
        nonlinear=True,
        random=True,
        needs="torch",
    )

    _scores_are_probabilities = True

    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        from skpml.deep._ensemble import Trainer, train_ensemble

        rates = check_noise_rate(self.noise_rate, Y.shape[1])
        if rates is not None:  # without noise every candidate is true, to the last digit
            rates = np.where(np.broadcast_to(self.noise_rate, rates.shape) == 0, 0.0, rates)
        random = check_random_state(self.random_state)
        scaled = RangeScaler().fit_transform(X)
        if not scaled.any():
            raise ValueError("Every feature of X is constant; there is nothing to learn from.")
        rows = self._arrange(X, scaled, Y)
        labels = Y[np.ix_(rows, self._label_order)]
        inputs, factory = self._tensor(self._inputs(X[rows])), self._factory(float(self.dropout))
        trainer = Trainer(factory=factory, X=inputs, Y=self._tensor(labels), schedule=self)
        ensemble = train_ensemble(
            trainer,
            n_members=self.n_members,
            fraction=float(self.validation_fraction),
            one_true=None if is_auto(self.at_least_one) else bool(self.at_least_one),
            rates=None if rates is None else self._tensor(rates[self._label_order].astype(Y.dtype)),
            ridge=partial(self._score_by_ridge, scaled[rows][:, self._feature_order], labels, random),
            random=random,
        )
        self._keep(ensemble)
        logits = [to_numpy(member.logits) for member in ensemble.members]
        eta, self.confidences_ = np.empty_like(Y), np.empty_like(Y)
        place = np.ix_(rows, self._label_order)
        eta[place] = self._probabilities(logits)
        self.confidences_[place] = self._confidences(logits, to_numpy(ensemble.rates), labels)
        return eta

    def _arrange(self, X: Any, scaled: NDArray[Any], Y: NDArray[Any]) -> NDArray[np.intp]:
        """Return an order of rows that does not depend on positions; set those of features and labels, and the scaler."""
        rows = row_order(np.column_stack([scaled, Y]))
        self.network_ = self.network
        if self.network is None:
            self._feature_order, self._label_order = feature_order(scaled), label_order(scaled, Y)
            self.scaler_ = make_pipeline(RangeScaler(), StandardScaler()).fit(X[rows])
        else:
            # The positions of its inputs and outputs may have a meaning, as those of pixels have.
            self._feature_order, self._label_order = np.arange(X.shape[1]), np.arange(Y.shape[1])
            self.scaler_ = None
        self._hidden = tuple(int(width) for width in self.hidden_layer_sizes)
        return rows

    def _factory(self, dropout: float = 0.0) -> Factory:
        from skpml.deep._training import perceptron

        if self.network_ is None:
            return partial(perceptron, hidden=self._hidden, dropout=dropout)
        return self.network_

    def _inputs(self, X: Any) -> NDArray[Any]:
        """Return the inputs of the network."""
        seen = X if self.scaler_ is None else self.scaler_.transform(X)
        return as_dense(seen, X.dtype)[:, self._feature_order]

    def _tensor(self, values: NDArray[Any]) -> torch.Tensor:
        import torch

        # PyTorch's default may be another device.
        device = "cpu" if self.device is None else self.device
        return torch.as_tensor(np.ascontiguousarray(values), device=device)

    def _score_by_ridge(
        self, scaled: NDArray[Any], Y: NDArray[Any], random: np.random.RandomState
    ) -> torch.Tensor:
        """Score candidates by ridge regression without the row."""
        n_anchors = min(default_n_anchors(len(scaled)), _MOST_ANCHORS)
        anchors = RBFAnchors(n_anchors=n_anchors, random_state=random)
        # The last column is the constant; the spectrum centers its features.
        mapped = anchors.fit_transform(scaled.astype(np.float64))[:, :-1]
        return self._tensor(held_out_ridge(spectrum_of(mapped), Y.astype(np.float64))[0].astype(Y.dtype))

    def _keep(self, ensemble: Bunch) -> None:
        """Set what prediction needs, and the course of the first member."""
        self.states_ = [member.state for member in ensemble.members]
        self.at_least_one_ = ensemble.one_true
        self.noise_rate_ = np.empty(len(self._label_order))
        self.noise_rate_[self._label_order] = to_numpy(ensemble.rates)
        courses = [member.course for member in ensemble.members]
        history = {"training": courses[0].training}
        if courses[0].held_out:
            history["held_out"] = courses[0].held_out
        converged = all(course.converged for course in courses)
        self._record(history, converged=converged)
        if not converged and courses[0].held_out:
            warnings.warn(
                f"Networks were still making progress after max_epochs={self.max_epochs} epochs; increase max_epochs or "
                "learning_rate.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _scores(self, X: Any) -> NDArray[Any]:
        _require_torch()
        if self.device is not None:
            # The model may be on a machine without the device it was fitted on.
            check_device(self.device)
        import torch

        from skpml.deep._training import build, load_state, logits_of, own_randomness

        rows = self._tensor(self._inputs(X))
        offset = torch.zeros(len(self.classes_), dtype=rows.dtype, device=rows.device)
        logits = []
        with own_randomness(0, rows.device):
            module = build(self._factory(), offset, rows)
            for state in self.states_:
                load_state(module, state)
                logits.append(to_numpy(logits_of(module, rows)))
        scores = np.empty_like(logits[0])
        scores[:, self._label_order] = self._probabilities(logits)
        return scores

    def _probabilities(self, logits: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return η, averaged over the members."""
        each = [
            to_probability(member, family="logistic", one_true=self.at_least_one_, rates=None)
            for member in logits
        ]
        return np.mean(each, axis=0)

    def _confidences(
        self, logits: Sequence[NDArray[Any]], rates: NDArray[Any], Y: NDArray[Any]
    ) -> NDArray[Any]:
        """Return the probability that each candidate is true, averaged over the members."""
        occupied = Y.any(axis=1, keepdims=True) & self.at_least_one_
        each = [given_one(posterior(sigmoid(member), rates, Y), occupied) for member in logits]
        return np.mean(each, axis=0)

    def _check_parameters(self) -> None:
        _require_torch()
        for name in ("dropout", "validation_fraction"):
            if not is_number(value := getattr(self, name)) or not 0 <= value < 1:
                raise ValueError(f"{name} must be a number from 0 to below 1, got {value!r}.")
        if not is_number(self.learning_rate) or self.learning_rate <= 0:
            raise ValueError(f"learning_rate must be a number above 0, got {self.learning_rate!r}.")
        super()._check_parameters()
        sizes = self.hidden_layer_sizes
        if not isinstance(sizes, Sequence | np.ndarray) or not all(map(is_count, sizes)):
            raise ValueError(
                f"hidden_layer_sizes must be whole numbers of at least 1, such as (64, 64), got {sizes!r}."
            )
        check_at_least_one(self.at_least_one)
        if is_auto(self.at_least_one) and self.validation_fraction == 0:
            raise ValueError(
                'at_least_one="auto" needs rows held out; set it to True or False, or validation_fraction above 0.'
            )
        if self.device is not None:
            check_device(self.device)
        import torch

        is_module = isinstance(self.network, torch.nn.Module)
        if is_module or not (self.network is None or callable(self.network)):
            raise TypeError(
                "network must be None or a function (n_features, n_labels) that returns a new torch.nn.Module, one for "
                f"each member, got {'a module' if is_module else repr(self.network)}."
            )


def _require_torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise ImportError("skpml.deep needs PyTorch: pip install scikit-pml[torch]") from error
