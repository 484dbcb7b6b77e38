"""What is minimised on the chosen columns: one file a kind of loss, and how each is fitted.

Examples
--------
>>> from exactk import losses
>>> losses.names()
['squared', 'l21', 'l2r', 'huber', 'logistic', 'poisson', 'optimal_scoring']
>>> losses.create("l2r", r=0.7)
L2R(r=0.7)
"""

from exactk.losses.registry import create, loss_class, names

__all__ = ["create", "loss_class", "names"]
