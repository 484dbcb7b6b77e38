"""Constructors of problems from tables that are streamed, not held in memory."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from exactk.data.gram import check_memory_limit
from exactk.data.moments import Moments
from exactk.data.targets import Task
from exactk.errors import InputError, Setting
from exactk.streaming.base import OnRows, Stream
from exactk.streaming.moments import read_moments

if TYPE_CHECKING:
    from exactk.problem.problem import Problem

__all__ = ["STREAM_LIMIT", "Constructors", "check_width", "show_reading"]

# Bytes that the Gram matrix of a stream may take; there is no other way to solve its problem.
STREAM_LIMIT = 2**32


def check_width(stream: Stream, memory_limit: int = STREAM_LIMIT) -> None:
    """Raise where the products of all pairs of columns would not fit."""
    check_memory_limit(memory_limit)
    needed = 8 * stream.n_features**2
    if needed > memory_limit:
        raise InputError(
            (f"{stream.n_features:,} columns need {needed:,} bytes for their products, more than ",
             Setting("memory_limit"), f" ({memory_limit:,})"),
            parameter="memory_limit",
            hint=(*stream.memory_hint, ", name fewer columns, or load the table in Python and use "
                  "Problem.from_arrays, which reads wide tables column by column"),
        )  # fmt: skip


class Constructors(ABC):
    """What makes a `Problem` of files, Dask collections and Spark tables."""

    @classmethod
    @abstractmethod
    def from_moments(
        cls,
        moments: Moments,
        *,
        classes: Any = None,
        ridge: float = 0.0,
        scale: bool = True,
        feature_names: Sequence[str] | None = None,
        overwrite: bool = False,
    ) -> Problem:
        """Make a problem of moments."""

    @classmethod
    def from_stream(
        cls,
        stream: Stream,
        *,
        task: Task = "auto",
        classes: Any = None,
        ridge: float = 0.0,
        scale: bool = True,
        memory_limit: int = STREAM_LIMIT,
        verbose: int = 0,
    ) -> Problem:
        """Make a problem of a table that is passed over, block by block.

        Parameters
        ----------
        stream : Stream
            A table opened by one of the modules in `exactk.streaming`.
        task, classes, ridge, scale, memory_limit, verbose
            As in `from_files`.

        Returns
        -------
        Problem
        """
        check_width(stream, memory_limit)
        with show_reading(verbose) as show:
            moments, assumption = read_moments(stream, task=task, classes=classes, on_rows=show)
        problem = cls.from_moments(moments, ridge=ridge, scale=scale, overwrite=True)
        return replace(
            problem, stream=stream, memory_limit=memory_limit, target_assumption=assumption
        )

    @classmethod
    def from_files(
        cls,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        target: str | Sequence[str],
        *,
        columns: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        weights: str | None = None,
        task: Task = "auto",
        classes: Any = None,
        ridge: float = 0.0,
        scale: bool = True,
        memory_limit: int = STREAM_LIMIT,
        verbose: int = 0,
    ) -> Problem:
        r"""Make a problem of files of any size, in one pass and bounded memory.

        Parameters
        ----------
        paths : path, or sequence of paths
            A file, a folder, or a pattern such as ``"data/*.parquet"``: Parquet, CSV or TSV
            (.gz too), Arrow or Feather. All files must have the same columns and types.
        target : str or sequence of str
            Column to predict; several for several numbers.
        columns : sequence of str or None
            Features; None takes every column that has no other part. Others are not read.
        drop : sequence of str
            Columns to leave out.
        weights : str or None
            Column of row weights.
        task : {"auto", "classification", "regression"}
            Type of the target; "auto" as in `Problem.from_arrays`.
        classes : array-like or None
            The labels, where they are known; others are then an error. None finds them in the
            pass. Where they are text, so is the target of a CSV file, whatever it looks like.
        ridge, scale
            As in `Problem.from_arrays`.
        memory_limit : int
            Bytes that the products of the columns (8·d²) may take.
        verbose : int
            1 shows how many rows were read.

        Returns
        -------
        Problem

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from exactk import Problem, solve
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "monday.csv").write_text("a,b,y\n1,5,2.5\n2,3,3.5\n")
        ...     _ = Path(folder, "tuesday.csv").write_text("a,b,y\n4,4,5.5\n3,9,4.5\n")
        ...     problem = Problem.from_files(folder, "y")
        >>> solve(problem, 1).feature_names
        ('a',)
        """
        from exactk.streaming.files import open_files

        stream = open_files(paths, target, columns=columns, drop=drop, weights=weights, task=task)
        if isinstance(classes, Iterable) and any(isinstance(label, str) for label in classes):
            stream = stream.with_text_labels()
        return cls.from_stream(
            stream, task=task, classes=classes, ridge=ridge, scale=scale,
            memory_limit=memory_limit, verbose=verbose,
        )  # fmt: skip

    @classmethod
    def from_dask(
        cls,
        X: Any,
        y: Any = None,
        *,
        target: str | Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        weights: Any = None,
        task: Task = "auto",
        classes: Any = None,
        ridge: float = 0.0,
        scale: bool = True,
        memory_limit: int = STREAM_LIMIT,
    ) -> Problem:
        """Make a problem of a Dask array or dataframe, on whatever scheduler is active.

        Partitions are added up where they are and merged in a tree; only d × d numbers reach the
        caller. A collection that is not persisted is computed anew by every pass: one for squared
        loss (two for a float target whose `task` is left open), many for methods that weight
        rows, which want ``X.persist()`` first. Partitions should have more rows than columns.

        Parameters
        ----------
        X : dask array of shape (n, d), or dask dataframe
            In any chunks, also of unknown sizes.
        y : dask array, series or frame, array-like, or None
            The target, unless it is a column of X; in the partitions of X, or of known sizes.
        target : str, sequence of str, or None
            Column of the dataframe to predict; several for several numbers.
        columns : sequence of str or None
            Features of a dataframe (None takes every column that has no other part), or names
            for the columns of an array.
        drop : sequence of str
            Columns to leave out.
        weights : str, dask array or series, array-like, or None
            Row weights: a column of the dataframe, or given as y.
        task, classes, ridge, scale, memory_limit
            As in `from_files`.

        Returns
        -------
        Problem

        Examples
        --------
        >>> import dask.array as da
        >>> from sklearn.datasets import load_iris
        >>> from exactk import Problem, solve
        >>> X, y = load_iris(return_X_y=True)
        >>> problem = Problem.from_dask(da.from_array(X, chunks=(60, 2)), da.from_array(y))
        >>> solve(problem, 2).support.tolist()
        [1, 3]
        """
        from exactk.streaming.dask import open_dask

        stream = open_dask(X, y, target=target, columns=columns, drop=drop, weights=weights)
        return cls.from_stream(
            stream, task=task, classes=classes, ridge=ridge, scale=scale, memory_limit=memory_limit
        )

    @classmethod
    def from_spark(
        cls,
        df: Any,
        target: str | Sequence[str],
        *,
        columns: str | Sequence[str] | None = None,
        drop: Sequence[str] = (),
        weights: str | None = None,
        task: Task = "auto",
        classes: Any = None,
        ridge: float = 0.0,
        scale: bool = True,
        memory_limit: int = STREAM_LIMIT,
    ) -> Problem:
        """Make a problem of a Spark data frame, in one pass by its executors.

        Each partition adds up its own rows, executors merge what partitions have come to, and
        one d × d matrix reaches the driver. exactk and pyarrow must be installed where the
        executors run.

        Parameters
        ----------
        df : pyspark.sql.DataFrame
        target : str or sequence of str
            Column to predict; several for several numbers.
        columns : str, sequence of str, or None
            Features: columns of numbers, or one column of vectors or arrays of numbers, whose
            entries are the features. None takes every column that has no other part.
        drop, weights, task, classes, ridge, scale, memory_limit
            As in `from_files`.

        Returns
        -------
        Problem

        Examples
        --------
        With a session ``spark`` (not run here, for it would start Java)::

            df = spark.range(600).selectExpr(
                "sin(id) AS a", "cos(id) AS b", "id % 7 AS c", "sin(id) + id % 7 > 3 AS late"
            )
            problem = Problem.from_spark(df, "late")
            exactk.solve(problem, 2).feature_names  # ('a', 'c')
        """
        from exactk.streaming.spark import open_spark

        stream = open_spark(df, target, columns=columns, drop=drop, weights=weights, task=task)
        return cls.from_stream(
            stream, task=task, classes=classes, ridge=ridge, scale=scale, memory_limit=memory_limit
        )


@contextmanager
def show_reading(verbose: int) -> Iterator[OnRows | None]:
    """Show how many rows were read until the block ends, if that is wanted."""
    if not verbose:
        yield None
        return
    from exactk.utils.progress import row_bar

    with row_bar("reading") as show:
        yield show
