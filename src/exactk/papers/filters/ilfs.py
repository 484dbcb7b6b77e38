"""ILFS: relevance as a hidden state behind tokens, and paths of any length through the columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from exactk.papers.filters.base import (
    ROUNDING_DIGITS,
    Filter,
    Labels,
    Ranking,
    column_blocks,
    labels,
)
from exactk.params import Check, Choice, Integer, Number
from exactk.problem.problem import Problem
from exactk.result import Status
from exactk.types import Floats
from exactk.utils.monitor import Monitor

__all__ = ["ILFS"]


# How far the geometric series of paths is from its radius of convergence (r = 0.9/ρ(A)).
DAMPING = 0.9
# A topic at the start: the chance of its best token beside that of its worst.
RAMP = 5000.0
# A share of distances this close to the border between two tokens lies on it.
BORDER_DIGITS = 9
# Tokens at most: each costs a pass over the table.
MOST_TOKENS = 255


@dataclass(frozen=True)
class _Tokens(Check):
    """A number of tokens; beyond some hundreds most would stand for no value at all."""

    def __str__(self) -> str:
        """Return what to say in an error."""
        return f"a whole number from 2 to {MOST_TOKENS}"

    def allows(self, value: Any) -> bool:
        return Integer(2).allows(value) and value <= MOST_TOKENS


class ILFS(Filter):
    """Score each column by the weight of all paths through it in a graph of joint relevance.

    * Tokens: with δ the squared distance of a value to the mean of its own class and δ′ the mean
      of those to the other class means, the share δ/(δ + δ′) falls into one of T equal parts of
      [0, 1]: token 1 for values that belong clearly to their class, token T for those that look
      like another. n(t, f) is how often column f has token t.
    * Relevance: P(t | f) = P(t | z₁)P(z₁ | f) + P(t | z₂)P(z₂ | f) with two hidden states, fitted
      by EM: P(z | t, f) ∝ P(z | f)P(t | z), then P(z | f) ∝ Σ_t n(t, f)P(z | t, f) and
      P(t | z) ∝ Σ_f n(t, f)P(z | t, f). The start, P(t | z₁) falling and P(t | z₂) rising linearly
      from 5000 to 1 and P(z | f) = ½, makes z₁ the state of relevance.
    * Graph: A_ij = P(z₁ | f_i)P(z₁ | f_j).
    * Paths: S = Σ_l (rA)^l = (I − rA)⁻¹ − I with r = 0.9/ρ(A); the score of column i is row i of
      S summed.

    A has rank one: with p_i = P(z₁ | f_i), ρ(A) = ‖p‖² and the score is 9·p_i·Σp/‖p‖², so neither
    A nor an inverse is needed: after one reading of the table a step of EM costs T·d. The order is
    that of P(z₁ | f); columns with the same, as where it has reached 0 or 1 or where all tokens
    agree, come in the order of their mean share. EM never lowers the likelihood; it stops after
    `max_iter`, or when the mean log-likelihood of a value rises by less than `tol`.

    Parameters
    ----------
    n_tokens : int
        T.
    topics : {"learned", "fixed"}
        Whether EM also moves P(t | z), as the paper writes it. "fixed" leaves it at the start, as
        the authors' published program does; then the likelihood is concave in P(z | f).
    max_iter : int
        Steps of EM at most.
    tol : float
        Rise of the mean log-likelihood that ends EM.

    Notes
    -----
    Cost: O(n·d·c) for the tokens and O(T·d) a step of EM. Memory: blocks of the table and T·d
    counts.

    Guaranteed: the k highest scores, which have the order of P(z₁ | f); EM never lowers the
    likelihood.

    The authors' published program takes the share of δ among the distances to both of two class
    means, which is the same; with the mean of the other distances a column without any difference
    has the share ½ for more classes too, not 1/c. The program cuts [0, 1] so that the last token
    is for the value 1 alone, computes new P(t | z) but goes on with the old ones ("fixed"), starts
    P(z₁ | f) at the share of the last three tokens, and takes ⌈max_i Σ_j A_ij⌉/d for the paper's
    0.9, which moves no column. Here the start treats all columns alike. EM's solution is not
    unique when topics are learned, but the order is that of the line on which P(t | f) of all
    columns lie: solutions on one line differ in where its ends are.

    References
    ----------
    G. Roffo, S. Melzi, U. Castellani, A. Vinciarelli, "Infinite latent feature selection: a
    probabilistic latent graph-based ranking approach", ICCV 2017.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="ilfs").order
    array([2, 3])
    """

    checks: ClassVar[Mapping[str, Check]] = {
        "n_tokens": _Tokens(),
        "topics": Choice(options=("learned", "fixed")),
        "max_iter": Integer(1),
        "tol": Number("[0, inf)"),
    }

    def __init__(
        self,
        n_tokens: int = 6,
        topics: Literal["learned", "fixed"] = "learned",
        max_iter: int = 5000,
        tol: float = 1e-9,
    ) -> None:
        self.n_tokens = n_tokens
        self.topics = topics
        self.max_iter = max_iter
        self.tol = tol

    def rank(self, problem: Problem, k: int, monitor: Monitor) -> Ranking:  # noqa: D102
        counts, shares = token_counts(problem, self.n_tokens)
        p, trace, status = self._relevance(counts, monitor)
        size = float(p @ p)
        scores = DAMPING / (1.0 - DAMPING) * p.sum() / size * p if size > 0 else p
        order = np.lexsort((np.round(shares, ROUNDING_DIGITS), -np.round(p, ROUNDING_DIGITS)))
        return Ranking(order, scores, trace, status, per_column=False)

    def _relevance(self, counts: Floats, monitor: Monitor) -> tuple[Floats, list[float], Status]:
        """P(z₁ | f) after the last step of EM, the likelihoods, and what ended it."""
        p, trace = np.zeros(0), []
        try:
            for now, likelihood in relevance(counts, self.topics == "learned"):
                p = now
                trace.append(likelihood)
                monitor.report(len(trace), self.max_iter, likelihood)
                if len(trace) > 1 and trace[-1] - trace[-2] < self.tol:
                    break
                if len(trace) >= self.max_iter:
                    return p, trace, Status.MAX_ITER
                if monitor.expired:
                    return p, trace, Status.TIME_LIMIT
        except KeyboardInterrupt:
            if not trace:
                raise
            return p, trace, Status.INTERRUPTED
        return p, trace, Status.CONVERGED


def token_counts(problem: Problem, n_tokens: int) -> tuple[Floats, Floats]:
    """Return the frequency of each token in each candidate, and the mean of what it stands for.

    Returns
    -------
    counts : ndarray of shape (n_tokens, n_candidates)
    shares : ndarray of shape (n_candidates,)
        Mean of δ/(δ + δ′).
    """
    table = labels(problem)
    sizes = table.sizes
    members = np.zeros((table.n_classes, len(table.codes)))
    members[table.codes, np.arange(len(table.codes))] = table.weights
    m = len(problem.candidates)
    counts, shares = np.empty((n_tokens, m)), np.empty(m)
    for part, X in column_blocks(problem, table.rows):
        share = _shares(X, members @ X / sizes[:, None], table)
        shares[part] = table.weights @ share
        share *= n_tokens
        tokens = np.floor(np.round(share, BORDER_DIGITS, out=share), out=share)
        np.minimum(tokens, n_tokens - 1, out=tokens)
        for token in range(n_tokens):
            counts[token, part] = table.weights @ (tokens == token)
    weight = table.weights.sum()
    return counts / weight, shares / weight


def _shares(X: Floats, means: Floats, table: Labels) -> Floats:
    """δ/(δ + δ′) of every value; X is used up."""
    own = X - means[table.codes]
    own *= own
    # Σ_c (x − μ_c)² about the mean of the means, so that nothing cancels.
    centre, others = means.mean(axis=0), len(means) - 1
    X -= centre
    X *= X
    X *= len(means)
    X += ((means - centre) ** 2).sum(axis=0)
    X -= own
    other = np.maximum(X, 0.0, out=X)
    other /= others
    other += own
    # A value that is the mean of every class says nothing.
    share: Floats = np.divide(own, other, out=np.full_like(own, 0.5), where=other > 0)
    return share


def relevance(counts: Floats, learn: bool) -> Iterator[tuple[Floats, float]]:
    """Run EM: P(z₁ | f) after each step and the mean log-likelihood of a value there.

    Parameters
    ----------
    counts : ndarray of shape (n_tokens, n_columns)
        Share of each token in each column.
    learn : bool
        Whether P(t | z) is moved as well.
    """
    first = np.linspace(RAMP, 1.0, len(counts))
    first /= first.sum()
    second = first[::-1].copy()
    p = np.full(counts.shape[1], 0.5)
    while True:
        one, two = first[:, None] * p, second[:, None] * (1.0 - p)
        mixed = one + two
        held = np.divide(counts * one, mixed, out=np.zeros_like(counts), where=mixed > 0)
        p = np.clip(held.sum(axis=0), 0.0, 1.0)
        if learn:
            rest = counts - held
            first = _normalised(held.sum(axis=1), first)
            second = _normalised(np.maximum(rest.sum(axis=1), 0.0), second)
        mixed = first[:, None] * p + second[:, None] * (1.0 - p)
        logs = np.log(mixed, out=np.zeros_like(mixed), where=(mixed > 0) & (counts > 0))
        yield p, float((counts * logs).sum() / counts.shape[1])


def _normalised(values: Floats, otherwise: Floats) -> Floats:
    """Values as a distribution; a state that no column is in keeps the one it had."""
    total = float(values.sum())
    return values / total if total > 0 else otherwise
