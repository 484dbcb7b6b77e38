"""Every method by name: strings only, imported when asked for.

A new method is one file and one line here; the selector, the command line, the benchmarks and
the contract tests all read this list.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from exactk.errors import UnknownMethodError, UnknownOptionError, did_you_mean, show_value
from exactk.methods.base import Method

__all__ = ["MethodInfo", "create", "describe", "method_class", "names"]


@dataclass(frozen=True)
class MethodInfo:
    """One line about a method: where it is, its family, its source and what it does."""

    name: str
    target: str
    family: str
    reference: str
    summary: str


_METHODS = {
    info.name: info
    for info in (
        MethodInfo("exchange", "exactk.methods.exchange:Exchange", "l2,0 search", "exactk",
                   "greedy start, steepest swaps with refit, search over many seeds"),
        MethodInfo("greedy", "exactk.methods.greedy:Greedy", "l2,0 search", "Efroymson 1960",
                   "forward selection: the best single addition, k times"),
        MethodInfo("exhaustive", "exactk.methods.exhaustive:Exhaustive", "exact", "enumeration",
                   "every subset of size k: the proven best, for small problems"),
        MethodInfo("stability", "exactk.methods.stability:Stability", "l2,0 search",
                   "Meinshausen & Bühlmann 2010", "the k that exchange picks most often on halves"),
        MethodInfo("cdlsr", "exactk.papers.methods.cdlsr:CDLSR",
                   "l2,0 search", "Xu et al., AAAI 2023",
                   "coordinate descent over the members, coefficients held, from random starts"),
        MethodInfo("ipfs", "exactk.papers.methods.ipfs:IPFS",
                   "l2,0 relaxation", "Fan et al., IJCAI 2017",
                   "0-1 weights as box and sphere, ADMM"),
        MethodInfo("rpfs", "exactk.papers.methods.rpfs:RPFS",
                   "l2,0 relaxation", "Cai et al., IJCAI 2013",
                   "l2,1 loss, k rows, augmented Lagrangian"),
        MethodInfo("nmapg", "exactk.papers.methods.nmapg:NMAPG",
                   "l2,0 relaxation", "An et al., JNVA 2021",
                   "l2,1 loss and penalty, a penalty on all rows but k, proximal gradient"),
        MethodInfo("pgd", "exactk.papers.methods.pgd:PGD",
                   "l2,0 relaxation", "Pang et al., TKDE 2019",
                   "gradient step, keep the k largest rows"),
        MethodInfo("gsrfs", "exactk.papers.methods.gsrfs:GSRFS",
                   "l2,p penalty", "Peng & Fan, AAAI 2017",
                   "l2,r loss with l2,p penalty, reweighted least squares"),
        MethodInfo("mtfs", "exactk.papers.methods.mtfs:MTFS",
                   "l2,p penalty", "Obozinski et al. 2006",
                   "squared loss with l2,1 penalty: the multi-task lasso"),
        MethodInfo("rfs", "exactk.papers.methods.rfs:RFS", "l2,p penalty", "Nie et al., NIPS 2010",
                   "l2,1 loss with l2,1 penalty"),
        MethodInfo("erfs", "exactk.papers.methods.erfs:ERFS", "l2,p penalty", "Wang & Chen 2013",
                   "l2,p loss with l2,p penalty"),
        MethodInfo("rk1u", "exactk.papers.methods.rk1u:RK1U", "l2,p penalty", "Zhang et al. 2014",
                   "squared loss with l2,p penalty"),
        # Filters.
        MethodInfo("fisher", "exactk.papers.filters.fisher:Fisher", "filter", "Duda et al. 2000",
                   "scatter between the classes beside scatter within them"),
        MethodInfo("infogain", "exactk.papers.filters.infogain:InfoGain", "filter",
                   "Raileanu & Stoffel 2004", "entropy of the classes that the levels take away"),
        MethodInfo("chi2", "exactk.papers.filters.chi2:Chi2", "filter", "Liu & Setiono 1995",
                   "chi-squared statistic of levels and classes"),
        MethodInfo("mrmr", "exactk.papers.filters.mrmr:MRMR", "filter", "Peng et al., TPAMI 2005",
                   "relevance for the classes beside redundancy with those taken before"),
        MethodInfo("cfs", "exactk.papers.filters.cfs:CFS",
                   "subset filter", "Hall & Smith, FLAIRS 1999",
                   "merit of a subset by symmetrical uncertainty, best-first search"),
        MethodInfo("relieff", "exactk.papers.filters.relieff:ReliefF",
                   "filter", "Kononenko, ECML 1994",
                   "differences to near rows of other classes less those of the same"),
        MethodInfo("ttest", "exactk.papers.filters.ttest:TTest",
                   "filter", "Student 1908, Welch 1947",
                   "distance of class means in units of its standard error"),
        MethodInfo("spec", "exactk.papers.filters.spec:SPEC", "filter", "Zhao & Liu, ICML 2007",
                   "columns that vary little along a graph of the rows of each class"),
        MethodInfo("ilfs", "exactk.papers.filters.ilfs:ILFS", "filter", "Roffo et al., ICCV 2017",
                   "relevance as a hidden state behind tokens, paths of any length"),
        MethodInfo("covth", "exactk.papers.filters.covth:CovTh",
                   "filter", "Krauthgamer et al. 2015",
                   "leading eigenvector of the strong correlations; ignores y"),
        MethodInfo("svmrfe", "exactk.papers.filters.svmrfe:SVMRFE", "wrapper", "Guyon et al. 2002",
                   "linear SVM, the columns of least weight go, and again"),
        # Sparse models that the papers compare with.
        MethodInfo("dlsr", "exactk.papers.methods.dlsr:DLSR",
                   "l2,1 penalty", "Xiang et al., TNNLS 2012",
                   "class targets dragged apart, l2,1 penalty"),
        MethodInfo("crfs", "exactk.papers.methods.crfs:CRFS",
                   "l2,1 penalty", "He et al., CVPR 2012",
                   "correntropy loss with l2,1 penalty, half-quadratic"),
        MethodInfo("sfs", "exactk.papers.methods.sfs:SFS",
                   "l2,0 relaxation", "Luo et al., ICDM 2010",
                   "smooth loss, gradient step, keep k rows, from the multi-task lasso"),
        MethodInfo("slap", "exactk.papers.methods.slap:SLAP", "graph", "Chen et al., TNNLS 2018",
                   "similarities within classes and a projection with l2,1 penalty, by turns"),
        MethodInfo("s2dfs", "exactk.papers.methods.s2dfs:S2DFS", "l2,0 subspace",
                   "Wang et al., IJCAI 2020", "trace ratio between and within classes, on k rows"),
        MethodInfo("fspca", "exactk.papers.methods.fspca:FSPCA", "l2,0 subspace",
                   "Tian et al., NeurIPS 2020", "principal subspace on k rows; ignores y"),
        # Deep.
        MethodInfo("cae", "exactk.papers.deep.cae:CAE", "deep", "Balın et al., ICML 2019",
                   "concrete autoencoder: k soft choices of a column, cooled until hard"),
        MethodInfo("firdl", "exactk.papers.deep.firdl:FIRDL", "deep", "Wojtas & Chen, NeurIPS 2020",
                   "one network predicts from masks of columns, another ranks the masks"),
    )
}  # fmt: skip


def names() -> list[str]:
    """Return the names of all methods, the default first.

    Examples
    --------
    >>> names()[:3]
    ['exchange', 'greedy', 'exhaustive']
    """
    return list(_METHODS)


def describe(name: str) -> MethodInfo:
    """Return the registry line of a method, or raise with the nearest name."""
    if name not in _METHODS:
        raise UnknownMethodError(
            f"unknown method {show_value(name)}{did_you_mean(str(name), names())} (known methods: "
            f"{', '.join(names())})", parameter="method",
        )  # fmt: skip
    return _METHODS[name]


def method_class(name: str) -> type[Method]:
    """Import the class of a method."""
    module, _, attribute = describe(name).target.partition(":")
    cls: type[Method] = getattr(import_module(module), attribute)
    return cls


def create(name: str, **options: Any) -> Method:
    """Make a method object by name.

    Parameters
    ----------
    name : str
    **options
        Its parameters; an unknown one is an error that names the nearest.

    Returns
    -------
    Method

    Examples
    --------
    >>> create("exchange", effort=0)
    Exchange(effort=0)
    """
    cls = method_class(name)
    check_options(name, cls.option_names(), options)
    return cls(**options)


def check_options(name: str, known: list[str], options: dict[str, Any]) -> None:
    """Raise for options that the method does not have."""
    for option in options:
        if option not in known:
            has = f"its options are {', '.join(known)}" if known else "it has no options"
            others = [other for other in _METHODS if option in method_class(other).option_names()]
            whose = f"; {option!r} is one of {', '.join(map(repr, others))}" if others else ""
            raise UnknownOptionError(
                f"method {name!r} has no option {option!r}{did_you_mean(option, known)} "
                f"({has}){whose}", parameter=option,
            )  # fmt: skip
