"""Constructor of problems from AnnData, in memory or backed by a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from exactk.data.anndata import read_anndata
from exactk.data.gram import GramMode
from exactk.data.targets import Task
from exactk.errors import InputError
from exactk.losses.base import Loss
from exactk.losses.registry import task_of
from exactk.streaming.anndata import AnnDataStream

if TYPE_CHECKING:
    from exactk.problem.problem import Problem

__all__ = ["FromAnnData"]


class FromAnnData:
    """What makes a `Problem` of an AnnData."""

    @classmethod
    def from_anndata(
        cls,
        adata: Any,
        target: Any,
        *,
        layer: str | None = None,
        use_raw: bool = False,
        names: str | None = None,
        weights: Any = None,
        ridge: float = 0.0,
        scale: bool = True,
        task: Task = "auto",
        loss: str | Loss = "squared",
        class_weight: Any = None,
        gram: GramMode = "auto",
        memory_limit: int | None = None,
        verbose: int = 0,
    ) -> Problem:
        """Make a problem of an AnnData: genes are features, a column of `obs` is the target.

        Values are taken as they are: log-normalised ones are expected, and raw counts are neither
        normalised nor refused. Columns are standardised as everywhere, see `scale`. The AnnData
        is not changed.

        Parameters
        ----------
        adata : AnnData
            Dense or sparse, of any numeric dtype, or a view. Where it is backed by a file
            (``backed="r"``) cells are passed over some at a time, with d × d numbers in memory; a
            view of such a one is read.
        target : str or array-like of shape (n,) or (n, c)
            Column of `obs` (categories, text, numbers), or what `from_arrays` takes as y.
            Categories without a cell are no classes; missing labels are an error.
        layer : str or None
            Layer in place of `X`.
        use_raw : bool
            Take `adata.raw`, with its genes.
        names : str or None
            Column of `var` with the names of the genes; None takes `var_names`.
        weights : str, array-like of shape (n,), or None
            Column of `obs`, or numbers: what each cell counts.
        ridge, scale, task, loss, class_weight, gram
            As in `Problem.from_arrays`.
        memory_limit : int or None
            Bytes that the products of the columns may take; None is the limit of `from_arrays`,
            or that of `from_files` where the AnnData is backed.
        verbose : int
            1 shows how many cells were read of one that is backed.

        Returns
        -------
        Problem

        Examples
        --------
        >>> import anndata, numpy as np, pandas as pd
        >>> from exactk import Problem, solve
        >>> rng = np.random.default_rng(0)
        >>> kind = pd.Categorical(["B", "T"] * 30)
        >>> X = rng.normal(size=(60, 4)) + np.outer(kind.codes, [0, 2, 0, 1])
        >>> adata = anndata.AnnData(
        ...     X,
        ...     obs=pd.DataFrame({"cell_type": kind}, index=[f"cell{i}" for i in range(60)]),
        ...     var=pd.DataFrame(index=["ACTB", "CD3E", "GAPDH", "IL7R"]),
        ... )
        >>> problem = Problem.from_anndata(adata, "cell_type")
        >>> solve(problem, 2).selected
        ('CD3E', 'IL7R')
        """
        made = cast("type[Problem]", cls)
        cells = read_anndata(
            adata, target, layer=layer, use_raw=use_raw, names=names, weights=weights
        )
        limit: dict[str, Any] = {} if memory_limit is None else {"memory_limit": memory_limit}
        if cells.in_memory:
            return made.from_arrays(
                cells.X, cells.y, sample_weight=cells.weights, ridge=ridge, scale=scale,
                feature_names=cells.names, task=task, loss=loss, class_weight=class_weight,
                gram=gram, **limit,
            )  # fmt: skip
        if gram == "columns":
            raise InputError(
                "gram='columns' needs the cells in memory, and adata is backed", parameter="gram",
                hint="read them with adata.to_memory()",
            )  # fmt: skip
        wanted = task_of(loss, task)
        problem = made.from_stream(
            AnnDataStream(cells, wanted), task=wanted, ridge=ridge, scale=scale, verbose=verbose,
            **limit,
        )  # fmt: skip
        problem = problem.with_loss(loss)
        if class_weight is None:
            return problem
        return problem.with_class_weight(class_weight, verbose=verbose)
