"""Numbers from logits, for engines without TensorFlow."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.regression.options import REGRESSION
from bert_tf.tasks.tables.table_host import TableHost


@dataclasses.dataclass(frozen=True, kw_only=True)
class RegressionHost(TableHost):
    """A `HostTask`."""

    declaration: ClassVar[ServedTaskDeclaration] = REGRESSION

    def predictions(self, logits: np.ndarray) -> dict[str, Any]:
        """The number, in the scale of the labels as the graph's logit is."""
        return {"predicted_value": logits[:, 0]}
