"""What files and edges mean together, whatever the format: told through small DAX files."""

import numpy as np
import pytest

from daws.formats.draft import find_circle
from tests.unit.formats.samples import dax, edges, inputs


def job(name: str, reads: str = "", writes: str = "", sizes: dict[str, int] | None = None) -> str:
    def use(file: str, link: str) -> str:
        size = f' size="{sizes[file]}"' if sizes and file in sizes else ""
        return f'<uses file="{file}" link="{link}"{size}/>'

    listed = [use(file, "input") for file in reads.split()] + [use(file, "output") for file in writes.split()]
    return f'<job id="{name}" name="{name}" runtime="1">{"".join(listed)}</job>\n'


def edge(parent: str, child: str) -> str:
    return f'<child ref="{child}"><parent ref="{parent}"/></child>\n'


def test_edges_without_data_share_one_object_of_the_parent(read):
    found = read(dax(job("a") + job("b") + job("c") + edge("a", "b") + edge("a", "c")))
    assert edges(found) == {("a", "b"), ("a", "c")}
    assert found.graph.object_count == 1
    assert found.graph.object_bytes.tolist() == [0]
    assert found.notes == ("2 edges without data",)


def test_an_edge_listed_twice_is_one(read):
    found = read(dax(job("a") + job("b") + edge("a", "b") * 3))
    assert found.graph.edge_count == 1


def test_files_without_declared_edges_make_edges(read):
    found = read(dax(job("b", "x") + job("a", "", "x")))
    assert edges(found) == {("a", "b")}
    assert "1 edge known from files alone" in found.notes


def test_a_file_that_nobody_writes_comes_from_outside_once(read):
    found = read(dax(job("a", "x") + job("b", "x")))
    assert found.graph.external_count == 1
    assert edges(found) == set()


def test_a_file_that_is_changed_in_place_is_two_objects(read):
    found = read(dax(job("a", "x", "x") + job("b", "x")))
    assert list(found.file_names) == ["x", "x"]
    assert edges(found) == {("a", "b")}
    assert found.graph.inputs_of(0).tolist() == [1]  # the one from outside


def test_of_several_writers_a_declared_parent_counts(read):
    writers = job("a", "", "x") + job("b", "", "x") + job("c", "", "x")
    found = read(dax(writers + job("r", "x") + edge("b", "r")))
    assert edges(found) == {("b", "r")}
    assert "1 file with several writers" in found.notes


def test_of_several_parents_that_write_it_the_last_counts_and_the_others_are_waited_for(read):
    writers = job("a", "", "x") + job("b", "", "x")
    found = read(dax(writers + job("r", "x") + edge("a", "r") + edge("b", "r")))
    assert edges(found) == {("a", "r"), ("b", "r")}
    assert inputs(found, "r") == ["x", ""]
    assert found.graph.producer[found.graph.inputs_of(2)].tolist() == [1, 0]


def test_of_several_writers_without_a_parent_the_latest_before_the_reader_counts(read):
    chain = job("a", "", "x") + job("b", "", "x") + job("m") + job("r", "x") + job("z", "", "x")
    found = read(dax(chain + edge("a", "b") + edge("b", "m") + edge("m", "r") + edge("r", "z")))
    assert ("b", "r") in edges(found)
    assert ("z", "r") not in edges(found)


def test_files_that_contradict_declared_edges_come_from_outside(read):
    found = read(dax(job("a", "log") + job("b", "", "log") + edge("a", "b")))
    assert edges(found) == {("a", "b")}
    assert "1 file read before it is written, taken from outside" in found.notes


def test_several_writers_that_all_come_later_give_nothing(read):
    found = read(dax(job("a", "log") + job("b", "", "log") + job("c", "", "log") + edge("a", "b") + edge("a", "c")))
    assert edges(found) == {("a", "b"), ("a", "c")}
    assert "1 file read before it is written, taken from outside" in found.notes


def test_a_circle_of_files_alone_is_refused(refusal):
    line = refusal(dax(job("a", "y", "x") + job("b", "x", "y")))
    assert "2 tasks wait for each other in a circle" in line


@pytest.mark.parametrize(
    ("jobs", "size", "note"),
    [
        ([job("a", "", "x", {"x": 5}), job("b", "x", "", {"x": 9})], 5, "1 file with several sizes"),
        ([job("a", "", "x"), job("b", "x", "", {"x": 9}), job("c", "x", "", {"x": 3})], 9, "1 file with several sizes"),
        ([job("a", "", "x"), job("b", "x")], 0, "1 file without a size taken as empty"),
        ([job("a", "", "x", {"x": -5})], 0, "1 negative size taken as unknown"),
    ],
)
def test_sizes_are_mended(read, jobs, size, note):
    found = read(dax("".join(jobs)))
    assert found.graph.object_bytes.tolist() == [size]
    assert note in found.notes


def test_a_circle_is_found_in_a_large_graph():
    ring = np.arange(1000)
    circle = find_circle(2000, np.append(ring + 1000, 5), np.append((ring + 1) % 1000 + 1000, 1005))
    assert sorted(circle) == list(range(1000, 2000))
