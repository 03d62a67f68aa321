"""The settings of a native reader as JSON, without credentials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ._checks import set_members
from ._rank import Worker
from .options import Options

__all__ = ["ReaderSpec"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSpec:
    """The settings of a native reader: the options of a reader, and where in the data set and in the epoch it begins."""

    options: Options
    pipeline: str
    epoch: int
    epochs: int | None = None
    """Iterations that will follow, including this one; by default those of the options."""
    rank: int = 0
    world: int = 1
    local_ranks: int = 1
    start_position: int = 0
    start_batch: int = 0
    worker: Worker = field(default_factory=Worker)
    rows_read: tuple[tuple[int, int], ...] | None = None
    """For tables: (world, rows read by each rank), in order. `start_position` and `worker` do not apply then."""
    columns: Mapping[str, Any] | None = None
    """For shards without an index: `value`, the extension for the pipeline or `None`, and `further`, those of further columns."""
    shards_read: tuple[Mapping[str, Any], ...] | None = None
    """For shards without an index: what readers have read of the epoch. `start_position` does not apply then."""

    def to_json(self) -> str:
        """The JSON document that the native module takes as `spec_json`: the members that are set."""
        rows_read = self.rows_read and [
            {"world": world, "rows_per_rank": rows} for world, rows in self.rows_read
        ]
        options = self.options.native()
        members = {
            **options,
            "pipeline": self.pipeline,
            "epoch": self.epoch,
            "epochs": self.epochs or options["epochs"],
            "rank": self.rank,
            "world": self.world,
            "local_ranks": self.local_ranks,
            "start_position": self.start_position,
            "start_batch": self.start_batch,
            "every": self.worker.count,
            "turn": self.worker.index,
            "rows_read": rows_read or None,
            "columns": self.columns,
            "shards_read": self.shards_read,
        }
        return json.dumps(set_members(members), separators=(",", ":"))
