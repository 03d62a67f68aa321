"""Rounds, and checks of epochs."""

import dataclasses

import pytest

from ..rounds import ContestantError, Epoch, check_epoch, measure, order
from ..task import Task, layout

TASK = Task("http://store", "bench", "train/", "shards/", "/photos", "/tmp", ("class00", "class01"), 5, 2, 2)


def test_each_round_starts_with_another_contestant_after_one_that_does_not_count():
    assert order(["a", "b"], 3) == [(-1, "a"), (-1, "b"), (0, "a"), (0, "b"), (1, "b"), (1, "a"), (2, "a"), (2, "b")]


def test_the_first_epoch_of_each_does_not_count():
    class Counting:
        def __init__(self) -> None:
            self.count = 0

        def read(self) -> Epoch:
            self.count += 1
            return Epoch(10, 0, float(self.count), 1.0)

    measured = measure({"a": Counting(), "b": Counting()}, 2, progress=iter)
    assert {name: [epoch.cpu_seconds for epoch in each] for name, each in measured.items()} == {"a": [2, 3], "b": [2, 3]}
    assert measured["a"][0].samples_per_cpu_second == 5


def test_an_epoch_is_each_sample_once():
    # Labels 0, 1, 0, 1, 0.
    check_epoch("a", Epoch(5, 2, 1.0, 1.0), TASK)
    for epoch in (Epoch(4, 2, 1.0, 1.0), Epoch(5, 3, 1.0, 1.0)):
        with pytest.raises(ContestantError, match="a: expected 5 samples with labels that sum up to 2, found"):
            check_epoch("a", epoch, TASK)


def test_labels_are_folders_in_order():
    task = dataclasses.replace(TASK, classes=tuple(sorted({name.split("/")[0] for name in layout(25)})))
    assert [task.label(f"train/{name}") for name in layout(25)] == [index % 10 for index in range(25)]


def test_a_task_survives_the_command_line():
    assert Task.from_json(TASK.to_json()) == TASK
