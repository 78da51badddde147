"""What notebooks show."""

from typing import Any

import daws
from daws.client.waiting import FutureList
from daws.model.html import size, table, text
from daws.runs.timeline import Timeline
from daws.sim.cluster import cluster_of
from daws.sim.simulate import simulate
from daws.strategy import parse_strategy
from daws.workloads import parse_workload


def fail() -> None:
    raise ValueError("<script>")


def made(size: int) -> bytes:
    return bytes(size)


def test_text_is_escaped():
    assert "<script>" not in table("<script>", [("<script>", "<script>"), ("empty", "")])
    assert "empty" not in table("", [("empty", "")])
    assert "&amp;" in text("&", "<")


def test_sizes():
    assert [size(one) for one in (0, 999, 1000, 2_500_000, 3e9, 4e12)] == [
        "0 bytes",
        "999 bytes",
        "1.0 kB",
        "2.5 MB",
        "3.0 GB",
        "4.0 TB",
    ]


def test_all_that_a_cell_may_end_with():
    timeline = Timeline()
    with daws.Cluster(1, timeline=timeline, explain=True) as cluster:
        small, large, failed = cluster.submit(pow, 2, 70), cluster.submit(made, 10**6), cluster.submit(fail)
        mapped = cluster.map(abs, range(5))
        daws.wait([small, large, failed])
        list(mapped)
        shown: Any = small
        assert "not read yet" in shown._repr_html_()
        assert "in a file" in large._repr_html_()
        small.result()
        assert "int" in shown._repr_html_() and "1180591620717411303424" in shown._repr_html_()
        assert "ValueError: &lt;script&gt;" in failed._repr_html_()
        assert "5" in mapped._repr_html_()
        assert "workers" in cluster._repr_html_() and "open" in cluster._repr_html_()
        assert "<pre>" in small.explain()._repr_html_()
        futures = daws.progress([small, failed])
        assert repr(futures) == "<2 futures: 1 done, 1 failed>" and futures == [small, failed]
        assert "1 failed" in futures._repr_html_()
        ended = cluster.run("echo '<b>'").result()
        assert "&lt;b&gt;" in ended._repr_html_()
    assert "closed" in cluster._repr_html_()
    assert "fail" in timeline._repr_html_()
    assert repr(FutureList()) == "<0 futures: none>"


def test_the_result_of_a_simulation():
    graph = parse_workload("bot:tasks=5").build(1, 1, 0)
    shown: Any = simulate(graph, cluster_of(1, 1), parse_strategy("daws"))[0]
    assert "makespan" in shown._repr_html_()
