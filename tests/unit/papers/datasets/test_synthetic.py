"""The generators keep what their definitions say, measured on what they made."""

from __future__ import annotations

import numpy as np
import pytest

from exactk.papers.datasets import checksum, make_genes, make_outliers, make_planted
from tests.support import says


def least_squares_residual(X, Y):
    coef = np.linalg.lstsq(X, Y, rcond=None)[0]
    return coef, Y - X @ coef


class TestOutliers:
    def test_the_sizes_of_the_paper(self):
        data = make_outliers()
        assert data.X.shape == (2000, 1000)
        assert data.y.shape == (2000, 5)
        assert data.informative.tolist() == list(range(200))
        assert data.task == "regression"

    def test_the_distributions(self):
        data = make_outliers(n=4000, d1=20, d2=30)
        X1, X2, X3, X4 = np.split(data.X, [20, 40, 60], axis=1)
        for block in (X1, X2):
            assert abs(block.mean()) < 0.02
            assert block.var() == pytest.approx(1.0, rel=0.02)
        assert np.abs(np.corrcoef(X1.T, X2.T) - np.eye(40)).max() < 0.08
        noise = X3 - 0.5 * (X1 + X2)
        assert noise.var() == pytest.approx(0.1, rel=0.02)
        assert -1 <= X4.min() < -0.99
        assert 0.99 < X4.max() <= 1
        assert X4.var() == pytest.approx(1 / 3, rel=0.02)

    def test_the_target(self):
        data = make_outliers(n=4000, d1=20, d2=30)
        coef, residual = least_squares_residual(data.X[:, :40], data.y)
        assert residual.var(ddof=0) * 4000 / 3960 == pytest.approx(0.5, rel=0.03)
        assert coef.min() > -0.1
        assert coef.max() < 1.1
        assert coef.mean() == pytest.approx(0.5, abs=0.06)
        # Redundant and irrelevant columns add nothing: as much as chance would.
        _, less = least_squares_residual(data.X, data.y)
        lost = 1 - np.sum(less**2) / np.sum(residual**2)
        assert lost == pytest.approx(50 / 3960, rel=0.4)

    @pytest.mark.parametrize(("share", "flipped"), [(0.0, 0), (0.01, 4), (0.1, 40), (1.0, 400)])
    def test_whole_rows_are_flipped(self, share, flipped):
        clean = make_outliers(n=400, d1=5, d2=5)
        data = make_outliers(n=400, d1=5, d2=5, outliers=share)
        np.testing.assert_array_equal(data.X, clean.X)
        same = (data.y == clean.y).all(axis=1)
        turned = (data.y == -clean.y).all(axis=1)
        assert (turned.sum(), same.sum()) == (flipped, 400 - flipped)

    def test_more_outliers_include_the_fewer(self):
        clean, few, many = (make_outliers(n=300, d1=3, d2=3, outliers=a) for a in (0, 0.05, 0.2))
        rows = [set(np.flatnonzero((data.y != clean.y).any(axis=1))) for data in (few, many)]
        assert rows[0] < rows[1]


class TestPlanted:
    @pytest.mark.parametrize("correlation", [0.0, 0.7, -0.4])
    def test_columns_correlate_as_ar1(self, correlation):
        X = make_planted(20_000, 12, 2, 3, correlation).X
        apart = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
        np.testing.assert_allclose(np.corrcoef(X.T), correlation**apart, atol=0.04)
        np.testing.assert_allclose(X.var(axis=0), 1.0, atol=0.05)

    @pytest.mark.parametrize("snr", [0.5, 1.0, 9.0])
    def test_signal_to_noise(self, snr):
        data = make_planted(20_000, 30, 4, 5, 0.5, snr)
        coef, noise = least_squares_residual(data.X[:, data.informative], data.y)
        signal = data.X[:, data.informative] @ coef
        np.testing.assert_allclose(signal.var(axis=0) / noise.var(axis=0), snr, rtol=0.06)

    def test_only_the_planted_columns_matter(self):
        data = make_planted(5_000, 40, 3, 6, 0.5, snr=4.0)
        coef, _ = least_squares_residual(data.X, data.y)
        largest = np.argsort(-np.linalg.norm(coef, axis=1))[:6]
        assert sorted(largest.tolist()) == data.informative.tolist()
        assert len(set(data.informative.tolist())) == 6


class TestGenes:
    def test_blocks_within_a_class(self):
        data = make_genes(n=9_000, d=23, classes=3, informative=4, block=10, correlation=0.6)
        within = data.X - np.stack([data.X[data.y == c].mean(axis=0) for c in range(3)])[data.y]
        blocks = np.arange(23) // 10
        expected = np.where(np.equal.outer(blocks, blocks), 0.6, 0.0)
        np.fill_diagonal(expected, 1.0)
        np.testing.assert_allclose(np.corrcoef(within.T), expected, atol=0.05)
        np.testing.assert_allclose(within.var(axis=0), 1.0, atol=0.07)

    def test_only_informative_columns_tell_classes_apart(self):
        data = make_genes(n=6_000, d=60, classes=5, informative=12, block=7)
        means = np.stack([data.X[data.y == c].mean(axis=0) for c in range(5)])
        spread = means.std(axis=0)
        others = np.setdiff1d(np.arange(60), data.informative)
        assert spread[others].max() < 0.1 < spread[data.informative].min()

    def test_the_shift_is_that_of_the_class_means(self):
        data = make_genes(n=4_000, d=400, classes=10, informative=400, block=1, shift=2.0)
        means = np.stack([data.X[data.y == c].mean(axis=0) for c in range(10)])
        assert means.std() == pytest.approx(2.0, rel=0.05)

    def test_classes_are_even(self):
        data = make_genes(n=32, d=50, classes=5, informative=3)
        assert sorted(np.bincount(data.y)) == [6, 6, 6, 7, 7]
        assert data.task == "classification"
        assert data.n_classes == 5
        assert (np.diff(data.y) < 0).any(), "rows are not sorted by class"


@pytest.mark.parametrize("make", [make_outliers, make_planted, make_genes])
def test_a_seed_is_a_data_set(make):
    small = {"n": 20, "d1": 3, "d2": 2} if make is make_outliers else {"n": 20, "d": 25}
    one, same = make(**small, random_state=1), make(**small, random_state=1)
    assert one.checksum == same.checksum == checksum(one.X, one.y)
    assert make(**small, random_state=2).checksum != one.checksum
    generator = np.random.default_rng(1)
    assert make(**small, random_state=generator).checksum == one.checksum
    assert make(**small, random_state=generator).checksum != one.checksum
    assert make(**small, random_state=np.random.RandomState(1)).X.shape == one.X.shape
    assert one.X.flags.c_contiguous
    assert one.informative.dtype == np.intp
    assert (np.diff(one.informative) > 0).all()


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (make_outliers, {"outliers": 1.5}, ("outliers", "[0, 1]", "1.5")),
        (make_outliers, {"n": 0}, ("n must be", "0")),
        (make_planted, {"d": 5, "k": 6}, ("k=6", "d=5")),
        (make_planted, {"correlation": 1.0}, ("correlation", "(-1, 1)")),
        (make_planted, {"snr": 0.0}, ("snr",)),
        (make_genes, {"classes": 1}, ("classes", "from 2 to 100")),
        (make_genes, {"d": 10, "informative": 11}, ("informative=11", "d=10")),
        (make_genes, {"correlation": -0.1}, ("correlation", "[0, 1)")),
        (make_genes, {"random_state": "x"}, ("random_state",)),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_out_of_range(make, options, words):
    with says(*words):
        make(**options)
