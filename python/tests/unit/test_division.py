"""Data sets are divided into consecutive stretches of about equal size, whatever the sizes of their pieces."""

from __future__ import annotations

import random

import pytest

from pushdown._stretches import count_tasks, divide


@pytest.mark.parametrize("seed", range(50))
def test_every_piece_is_in_one_range(seed: int) -> None:
    choose = random.Random(seed)
    sizes = [choose.choice([0, 1, 7, 1000, choose.randrange(10**9)]) for _ in range(choose.randrange(1, 60))]
    for count in (0, 1, 2, 3, len(sizes) - 1, len(sizes), len(sizes) + 5, 1000):
        ranges = divide(sizes, count)
        assert [index for part in ranges for index in part] == list(range(len(sizes)))
        assert all(ranges) and len(ranges) == min(max(count, 1), len(sizes))


@pytest.mark.parametrize("seed", range(20))
def test_ranges_have_about_equal_sizes(seed: int) -> None:
    choose = random.Random(seed)
    sizes = [choose.randrange(1, 1000) for _ in range(1000)]
    for count in (2, 7, 100):
        sums = [sum(sizes[part.start : part.stop]) for part in divide(sizes, count)]
        # A range ends within a piece of where it should.
        assert max(sums) <= sum(sizes) / count + 2 * max(sizes)
        assert min(sums) >= sum(sizes) / count - 2 * max(sizes)


def test_tasks_are_neither_small_nor_large() -> None:
    mebibyte = 1 << 20
    assert [count_tasks(size * mebibyte, 2) for size in (0, 1, 8, 9, 64, 512, 513, 6400)] == [1, 1, 1, 2, 8, 8, 9, 100]
    assert [count_tasks(800 * mebibyte, cpus) for cpus in (0.5, 1, 16, 64, 1000)] == [13, 13, 64, 100, 100]


def test_large_pieces_leave_pieces_for_others() -> None:
    assert divide([10**9, 1, 1, 1], 3) == [range(0, 1), range(1, 2), range(2, 4)]
    assert divide([1, 1, 1, 10**9], 3) == [range(0, 2), range(2, 3), range(3, 4)]
    assert divide([0] * 6, 3) == [range(0, 2), range(2, 4), range(4, 6)]
    assert divide([], 3) == []
