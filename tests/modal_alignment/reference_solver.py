"""PML-MA once more, slow and obvious, straight from the specification: dense n×n graph, SVDs, general solvers.

Shares no code with the library; the tests hold the fast solver against it.
"""

import numpy as np
import scipy.linalg


def similarity(X, k):
    n = len(X)
    distance = np.array([[np.sqrt(((a - b) ** 2).sum()) for b in X] for a in X])
    neighbours = []
    for i in range(n):
        order = [j for j in np.argsort(distance[i], kind="stable") if j != i]
        neighbours.append(order[:k])
    sigma = np.mean([distance[i, neighbours[i][-1]] for i in range(n)])
    S = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if j in neighbours[i] or i in neighbours[j]:
                S[i, j] = np.exp(-(distance[i, j] ** 2) / sigma**2) if sigma > 0 else 1.0
    return S


def objective(X, Y, S, P1, P2, Q, V, R, lam, alpha, beta, gamma):
    n = len(X)
    D = np.diag(R.sum(axis=1))
    local = sum(
        S[i, j] * ((P1.T @ X[i] - P2.T @ R[j]) ** 2).sum() for i in range(n) for j in range(n) if S[i, j]
    )
    return {
        "global_alignment": np.linalg.norm(X @ P1 - R @ P2) ** 2,
        "decomposition": np.linalg.norm(Y - R @ Q.T) ** 2,
        "low_rank": lam * np.linalg.svd(R, compute_uv=False).sum(),
        "local_alignment": alpha * local,
        "prototypes": beta * np.linalg.norm(D @ X - R @ V.T) ** 2,
        "classifier": gamma * np.linalg.norm(P1 @ P2.T) ** 2,
    }


def polar(M):
    U, _, Vt = np.linalg.svd(M, full_matrices=False)
    return U @ Vt


def prototypes_of(X, R, kind):
    if kind == "mean":
        return np.stack([(R[:, j] @ X) / R[:, j].sum() for j in range(R.shape[1])], axis=1)
    return X.T @ np.diag(R.sum(axis=1)) @ R @ np.linalg.pinv(R.T @ R)


def fit(X, Y, S, *, lam, alpha, beta, gamma, m, prototypes, learn_basis, n_iter, P2, known_true=0):
    """Run exactly ``n_iter`` iterations from the label projection ``P2``; returns the state and the loss history."""
    d, c = X.shape[1], Y.shape[1]
    delta = np.diag(S.sum(axis=1))
    W = np.eye(len(X)) + alpha * delta
    G = X + alpha * S @ X
    A = X.T @ W @ X + gamma * np.eye(d)
    R, Q = Y.copy(), np.eye(c)
    P1 = np.linalg.solve(A, G.T @ R @ P2)
    history = []
    for _ in range(n_iter):
        if m < c:
            P2 = polar(scipy.linalg.solve_sylvester(R.T @ W @ R, gamma * P1.T @ P1, R.T @ G @ P1))
        P1 = np.linalg.solve(A, G.T @ R @ P2)
        if learn_basis:
            U, _, Vt = np.linalg.svd(R.T @ Y)
            Q = Vt.T @ U.T
        D, V = np.diag(R.sum(axis=1)), prototypes_of(X, R, prototypes)
        gradient = 2 * (W @ R @ P2 @ P2.T - G @ P1 @ P2.T + R - Y @ Q + beta * (R @ V.T @ V - D @ X @ V))
        L = 2 * (np.linalg.norm(P2 @ P2.T + np.eye(c) + beta * V.T @ V, 2) + alpha * delta.max())
        U, s, Vt = np.linalg.svd(R - gradient / L, full_matrices=False)
        R = np.clip(U @ np.diag(np.maximum(s - lam / L, 0)) @ Vt, known_true, Y)
        history.append(objective(X, Y, S, P1, P2, Q, V, R, lam, alpha, beta, gamma))
    return {"P1": P1, "P2": P2, "Q": Q, "V": prototypes_of(X, R, prototypes), "R": R, "history": history}


def fit_released(X, Y, S, *, lam, alpha, beta, gamma, n_iter, eps=1e-300):
    """The authors' program for m = c, from its description: P1, V, Q, then R, ``n_iter`` times."""
    delta = np.diag(S.sum(axis=1))
    R, Q = Y.copy(), np.eye(Y.shape[1])
    for _ in range(n_iter):
        P1 = np.linalg.solve(
            X.T @ (X + alpha * delta @ X) + gamma * np.eye(X.shape[1]), X.T @ (R + alpha * S @ R)
        )
        V = X.T @ R / R.sum(axis=0)
        U, _, Vt = np.linalg.svd(R.T @ Y)
        Q = U @ Vt
        D = np.diag(R.sum(axis=1))
        gradient = 2 * (
            R
            - X @ P1
            + R @ Q.T @ Q
            - 2 * Y @ Q
            + alpha * delta @ R
            - alpha * S @ X @ P1
            + beta * (R @ V.T @ V - D @ X @ V)
        )
        L = 2 * np.linalg.norm(np.eye(len(Q)) + Q.T @ Q + beta * V.T @ V) + alpha * delta.max()
        U, s, Vt = np.linalg.svd(R - gradient / L, full_matrices=False)
        stepped = U @ np.diag(np.maximum(s - lam / L, 0)) @ Vt
        R = R * stepped / (R + eps) - np.maximum(R - Y, 0) * Y / (R + eps)
    return {"P1": P1, "Q": Q, "R": R}
