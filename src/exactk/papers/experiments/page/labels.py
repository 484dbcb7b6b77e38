"""What measures and papers are called on the page."""

from __future__ import annotations

from exactk.papers.experiments.classifiers import CLASSIFIERS
from exactk.report.numbers import SUPERSCRIPTS

__all__ = ["PAPERS", "capital", "higher_is_better", "name_of", "symbol"]

PAPERS = {
    "cdlsr": "Xu, Wang, Nie & Li, Efficient top-k feature selection using coordinate descent "
    "method, AAAI 2023",
    "ipfs": "Fan, Chang, Zhang, Wang & Du, Top-k supervise feature selection via ADMM for integer "
    "programming, IJCAI 2017",
    "rpfs": "Cai, Nie & Huang, Exact top-k feature selection via l2,0-norm constraint, IJCAI 2013",
    "nmapg": "An, Dong & Qin, Robust feature selection via nonconvex sparsity-based methods, "
    "J. Nonlinear Var. Anal. 5, 2021",
    "gsrfs": "Peng & Fan, A general framework for sparsity regularized feature selection via "
    "iteratively reweighted least square minimization, AAAI 2017",
    "exactk": "exactk’s own",
}

NAMES = {
    "1nn": "1-NN accuracy",
    "svm": "linear SVM accuracy (C = 1)",
    "svm-tuned": "linear SVM accuracy (tuned C)",
    "linear": "linear classifier accuracy",
    "objective": "objective ‖HY − HX_S W‖²",
    "own": "the method’s own objective",
    "seconds": "solver time, s",
    "n_iter": "iterations",
    "redundancy": "redundancy (mean |correlation|)",
    "rmse": "RMSE",
    "recovered": "share of the informative columns found",
    "row_norms": "row norms, by column",
    "weights": "entries of v, sorted",
}

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η",
    "theta": "θ", "kappa": "κ", "lam": "λ", "lambda": "λ", "lambda_": "λ", "mu": "μ", "nu": "ν",
    "rho": "ρ", "sigma": "σ", "tau": "τ",
}  # fmt: skip


def name_of(measure: str, *, percent: bool = False) -> str:
    """Return what to call a measure on an axis.

    Examples
    --------
    >>> name_of("1nn", percent=True)
    '1-NN accuracy, %'
    >>> name_of("sparsity@1e-06"), name_of("sparsity@0.25"), name_of("my own")
    ('rows with norm above 10⁻⁶', 'rows with norm above 0.25', 'my own')
    """
    if measure == "sparsity" or measure.startswith("sparsity@"):
        text = f"rows with norm above {_power(measure.partition('@')[2]) or 'the tolerance'}"
    else:
        text = NAMES.get(measure, measure)
    return f"{text}, %" if percent else text


def _power(text: str) -> str:
    """A tolerance as papers write it: 10⁻³ for 0.001."""
    try:
        mantissa, exponent = f"{float(text):.6e}".split("e")
    except ValueError:
        return text
    if float(mantissa) == 1.0 and int(exponent) < -1:
        return f"10{str(int(exponent)).translate(SUPERSCRIPTS)}"
    return text


def capital(text: str) -> str:
    """Return a text as the start of a sentence."""
    return text[:1].upper() + text[1:]


def symbol(option: str) -> str:
    """Return an option as papers write it: a Greek letter where its name is one.

    Examples
    --------
    >>> symbol("gamma"), symbol("lam"), symbol("n_starts")
    ('γ', 'λ', 'n_starts')
    """
    return GREEK.get(option, option)


def higher_is_better(measure: str) -> bool | None:
    """Return which way a measure is good; None where neither is.

    Examples
    --------
    >>> higher_is_better("svm"), higher_is_better("rmse"), higher_is_better("sparsity@0.1")
    (True, False, None)
    """
    if measure in CLASSIFIERS or measure == "recovered":
        return True
    lower = {"objective", "own", "seconds", "n_iter", "redundancy", "rmse"}
    return False if measure in lower else None
