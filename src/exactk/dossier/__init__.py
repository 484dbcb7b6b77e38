"""All that is known of a choice, gathered once: the record that a report is drawn from."""

from exactk.dossier.dossier import Dossier
from exactk.dossier.inquiry import investigate

__all__ = ["Dossier", "investigate"]
