"""The estimate of answering against published rates."""

import math
from collections import defaultdict

import pytest

from benchmarks.evidence.serving import published_rates, sources


def test_nine_in_ten_published_rates_lie_within_what_is_said():
    by_runtime = defaultdict(list)
    for row in published_rates():
        assert row["source"] in sources()
        off = abs(math.log(row["estimated"] / row["tokens_per_s"]))
        by_runtime[row["runtime"]].append(off <= math.log(row["factor"]))
    for runtime, inside in by_runtime.items():
        assert len(inside) >= 50, runtime
        assert sum(inside) >= 0.88 * len(inside), (runtime, sum(inside) / len(inside))


def test_another_runtime_and_many_requests_at_once_are_met_though_nothing_was_fitted_on_them():
    rows = [row for row in published_rates() if row["source"] == "TensorRT-LLM"]
    assert {row["batch"] for row in rows} >= {1, 52, 384}
    for row in rows:
        assert row["estimated"] == pytest.approx(row["tokens_per_s"], rel=0.25)
