"""The index of the API: every public name, from which Sphinx makes a page each."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from exactk import losses
from tools.site.rst import heading

__all__ = ["MODULES", "index_page", "public_names"]

# What belongs together for a reader; names that stand nowhere here come last.
GROUPS = {
    "Select": ("TopKSelector", "TopKClassifier", "TopKRegressor", "solve", "solve_path"),
    "Parameters": ("Constraints", "AutoK"),
    "Tables": ("read_table", "TableData", "Problem", "Moments"),
    "Results": ("Result", "Path", "Status"),
    "Decide": (
        "choose_k", "AutoKResult", "evaluate", "Evaluation", "stability", "Stability", "explain",
        "Explanation",
    ),
    "Prove": ("certify", "certify_path", "best_sets", "Certificate", "CertifiedPath", "BestSets"),
    "Report and export": ("investigate", "SelectionReport", "SavedSelection"),
    "Errors": (
        "ExactkError", "InputError", "InfeasibleError", "UnknownMethodError", "UnknownOptionError",
    ),
}  # fmt: skip
# Modules by their public name, and where their functions are defined.
MODULES = {
    "registry": "exactk.methods.registry",
    "losses": "exactk.losses",
    "plots": "exactk.plots",
    "datasets": "exactk.papers.datasets",
}
# What functions of the modules above return or build on.
BESIDE = {
    "Tables": ("exactk.utils.records_table.RecordsTable",),
    "To write a method": ("exactk.methods.base.Method", "exactk.result.Answer"),
    "To measure as the papers do": (
        "exactk.papers.experiments.classifiers.accuracy",
        "exactk.papers.experiments.measures.redundancy",
        "exactk.papers.experiments.measures.residual",
        "exactk.papers.experiments.splits.fold_splits",
        "exactk.papers.experiments.splits.share_split",
        "exactk.papers.experiments.tuning.tune",
    ),
}


def public_names() -> list[str]:
    """Return every public name of the package, without its modules and its version."""
    package = import_module("exactk")
    return [name for name in package.__all__ if name not in ("__version__", *MODULES)]


def index_page() -> str:
    """Return the page with a table for each group of names and each module."""
    public = public_names()
    grouped = {title: [n for n in names if n in public] for title, names in GROUPS.items()}
    known = {name for names in grouped.values() for name in names}
    rest = [name for name in public if name not in known]
    parts = [heading("API", "="), "Every public name, by what it is for."]
    for title, names in (*grouped.items(), *([("More", rest)] if rest else [])):
        parts += [heading(title), _summary("exactk", names)]
    for module, full in MODULES.items():
        imported = import_module(full)
        about = (imported.__doc__ or "").strip().split("\n\n")[0]
        # What the package gives, too, has its page there.
        above = [name for name in imported.__all__ if _same(imported, name)]
        listed = [name for name in imported.__all__ if name not in above]
        parts += [heading(f"exactk.{module}"), about, _summary(full, listed)]
        if above:
            parts.append("Here, too: " + ", ".join(f"`exactk.{name}`" for name in above) + ".")
        if module == "losses":
            classes = [losses.loss_class(name) for name in losses.names()]
            parts.append(_listing([f"{c.__module__}.{c.__name__}" for c in classes]))
    for title, listed_names in BESIDE.items():
        parts += [heading(title), _listing(listed_names)]
    return "\n\n".join(parts) + "\n"


def _same(module: ModuleType, name: str) -> bool:
    """Whether the package has the same object by the same name."""
    package = import_module("exactk")
    return name in package.__all__ and getattr(package, name) is getattr(module, name)


def _summary(module: str, names: list[str]) -> str:
    return _listing([f"{module}.{name}" for name in names])


def _listing(names: list[str] | tuple[str, ...]) -> str:
    lines = [".. autosummary::", "   :toctree: .", "", *(f"   {name}" for name in names)]
    return "\n".join(lines)
