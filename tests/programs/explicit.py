"""A Trainer whose exchange a test chooses."""

from gluon_dist.exchange.exchange import Exchange
from gluon_dist.exchange.trainer import Trainer

import mxnet as mx


class ExplicitTrainer(Trainer):
    """``gluon_dist.Trainer`` with this exchange; without a store for one device."""

    def __init__(self, params, optimizer, store=None, exchange=None):
        self._chosen = exchange or Exchange()
        super().__init__(params, optimizer, kvstore=store or mx.kv.create("local"))

    def _choose_exchange(self):
        return self._chosen
