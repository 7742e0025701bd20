"""The likelihood of candidate labels: noise model, noise rates, calibration and solvers.

Shared by :mod:`skpml.candidate_likelihood`, :mod:`skpml.deep` and :mod:`skpml.cleaning`; not for users.
"""

# ruff: noqa: I001 -- sorted, one statement per module

from skpml.likelihood._block_spectrum import (
    BlockSpectrum as BlockSpectrum,
    spectrum_of_blocks as spectrum_of_blocks,
)
from skpml.likelihood._cells import (
    certify_drops as certify_drops,
    estimate_share as estimate_share,
    learn_from_verified as learn_from_verified,
)
from skpml.likelihood._noise import (
    ENOUGH_CANDIDATES as ENOUGH_CANDIDATES,
    Curve as Curve,
    apply_level as apply_level,
    calibrate as calibrate,
    check_at_least_one as check_at_least_one,
    check_noise_rate as check_noise_rate,
    curvature as curvature,
    estimate_noise as estimate_noise,
    fit_calibration as fit_calibration,
    fit_level as fit_level,
    given_one as given_one,
    is_auto as is_auto,
    likelihood_and_slope as likelihood_and_slope,
    log_likelihood as log_likelihood,
    posterior as posterior,
    scale_odds as scale_odds,
    sigmoid as sigmoid,
)
from skpml.likelihood._settings import (
    Fit as Fit,
    Setting as Setting,
    find_nested_labels as find_nested_labels,
    fit_settings as fit_settings,
    held_out_ridge as held_out_ridge,
    keep_nested_order as keep_nested_order,
    pilot_covariance as pilot_covariance,
    to_probability as to_probability,
)
from skpml.likelihood._solvers import (
    adapt_length as adapt_length,
    clip_linear as clip_linear,
    label_covariance as label_covariance,
    prior_logits as prior_logits,
)
from skpml.likelihood._vote_counts import (
    Votes as Votes,
    check_votes as check_votes,
    count_votes as count_votes,
)
from skpml.likelihood._votes import (
    VOTE_WIDTHS as VOTE_WIDTHS,
    VoteFit as VoteFit,
    fit_best_ridge as fit_best_ridge,
    fit_vote_model as fit_vote_model,
    fit_votes as fit_votes,
)
