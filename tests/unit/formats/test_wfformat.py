"""WfFormat of all versions: what it means, what is mended, what is refused."""

import json

import pytest

from tests.unit.formats.samples import edges, inputs, new, new_task, old, old_task, text

SECOND = 1_000_000_000


def test_a_workflow_of_1_5(read):
    tasks = [
        new_task("cut_ID0000001", (), ("in",), ("a",)),
        new_task("join_ID0000002", ("cut_ID0000001",), ("a",), ("b",)),
    ]
    runs = [
        {
            "id": "join_ID0000002",
            "runtimeInSeconds": 0.5,
            "coreCount": 1.5,
            "memoryInBytes": 75016.0,
            "priority": 20,
            "command": {"program": "/bin/join", "arguments": ["-v", "a"]},
            "machines": ["m"],
            "avgCPU": 99.5,
        },
        {"id": "cut_ID0000001", "runtimeInSeconds": 2, "coreCount": None, "command": {"program": "cut"}},
    ]
    files = [{"id": "in", "sizeInBytes": 100}, {"id": "a", "sizeInBytes": 20}, {"id": "b", "sizeInBytes": 3}]
    found = read(new(tasks, files, runs))
    graph = found.graph
    assert (found.name, found.format, found.makespan_s, found.notes) == ("new", "WfFormat 1.5", 12.5, ())
    assert graph.kinds == ("cut", "join")
    assert graph.length_ns.tolist() == [2 * SECOND, SECOND // 2]
    assert (graph.cores.tolist(), graph.priority.tolist(), found.memory_bytes.tolist()) == ([1, 2], [0, 20], [0, 75016])
    assert edges(found) == {("cut_ID0000001", "join_ID0000002")}
    assert dict(zip(found.file_names, graph.object_bytes.tolist(), strict=True)) == {"a": 20, "b": 3, "in": 100}
    assert found.command_of(1) == ("/bin/join", "-v", "a")


def test_executions_are_found_by_numbers_texts_and_names(read):
    tasks = [{**new_task("cut"), "id": 1}, {**new_task("join"), "id": "2"}, {**new_task("sort"), "id": "3"}]
    runs = [{"id": "1", "runtimeInSeconds": 1}, {"id": 2, "runtimeInSeconds": 2}, {"id": "sort", "runtimeInSeconds": 3}]
    found = read(new(tasks, [], runs))
    assert found.graph.length_ns.tolist() == [SECOND, 2 * SECOND, 3 * SECOND] and not found.notes


def test_an_execution_whose_name_several_tasks_have_is_nobody_s(read):
    tasks = [{**new_task("cut"), "id": "1"}, {**new_task("cut"), "id": "2"}]
    found = read(new(tasks, [], [{"id": "cut", "runtimeInSeconds": 1}]))
    assert found.graph.length_ns.tolist() == [0, 0] and "1 execution of an unknown task left out" in found.notes


def test_what_an_execution_does_not_say_the_specification_may(read, refusal):
    task = {**new_task("a"), "runtimeInSeconds": 7, "cores": 3, "memoryInBytes": 10, "priority": 2}
    found = read(new([task], [], [{"id": "a", "coreCount": 2}]))
    assert found.graph.length_ns.tolist() == [7 * SECOND] and found.graph.cores.tolist() == [2]
    assert (found.memory_bytes.tolist(), found.graph.priority.tolist(), found.notes) == ([10], [2], ())
    task["runtimeInSeconds"] = "long"
    assert "workflow.specification.tasks[0].runtimeInSeconds: 'long'" in refusal(new([task], [], [{"id": "a"}]))


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("cut -f 'a b' c", ("cut", "-f", "a b", "c")),
        ("cat a | sort > b", ("cat a | sort > b",)),
        (" ", ()),
    ],
)
def test_a_command_may_be_one_line(read, line, command):
    assert read(new([new_task("a")], [], [{"id": "a", "command": line}])).command_of(0) == command


def test_arguments_may_be_of_all_kinds(read):
    command = {"program": "x", "arguments": [1, 2.5, None, True, "y"]}
    found = read(new([new_task("a")], [], [{"id": "a", "command": command}]))
    assert found.command_of(0) == ("x", "1", "2.5", "", "true", "y")


@pytest.mark.parametrize("version", ["1.3", "1.4"])
def test_older_versions_have_it_all_in_one_and_refer_by_name(read, version):
    late = version == "1.4"
    first = old_task(
        "cut_1", files=(("in", "input", 9), ("a", "output", 20)), id="1", category="Cut", cores=4, memory=2
    )
    second = old_task("join_2", ("cut_1",), (("a", "input", 20),), id="2")
    for task in (first, second):
        if late:
            task["runtimeInSeconds"] = task.pop("runtime")
            for file in task["files"]:
                file["sizeInBytes"] = file.pop("size")
    found = read(old(first, second, version=version))
    graph = found.graph
    assert (found.format, list(found.task_ids), found.makespan_s) == (f"WfFormat {version}", ["1", "2"], 9.0)
    assert edges(found) == {("1", "2")}
    assert graph.kinds == ("Cut", "join")
    assert graph.length_ns.tolist() == [SECOND, SECOND]
    assert (graph.cores.tolist(), found.memory_bytes.tolist()) == ([4, 1], [2000, 0])
    assert graph.object_bytes.tolist() == [20, 9]


def test_the_oldest_call_tasks_jobs(read):
    found = read(text({"schemaVersion": "1.1", "workflow": {"jobs": [{"name": "a", "runtime": 3}]}}))
    assert found.graph.length_ns.tolist() == [3 * SECOND]


def test_edges_may_be_declared_from_either_end(read):
    first, second, third = new_task("a"), new_task("b", ("a",)), new_task("c")
    first["children"] = ["b", "c"]
    found = read(new([first, second, third]))
    assert edges(found) == {("a", "b"), ("a", "c")}


def test_tasks_may_have_numbers_as_ids(read):
    first, second = new_task("a"), new_task("b")
    first["id"], second["id"], second["parents"] = 1, 2, [1]
    assert edges(read(new([first, second]))) == {("1", "2")}


@pytest.mark.parametrize(
    ("run", "length_ns", "note"),
    [
        ({"runtimeInSeconds": "0,25"}, SECOND // 4, ()),
        ({"runtimeInSeconds": -3}, 0, ("1 negative runtime taken as 0 s",)),
        ({"runtimeInSeconds": None}, 0, ("1 task without a runtime taken as 0 s",)),
        ({}, 0, ("1 task without a runtime taken as 0 s",)),
        ({"runtimeInSeconds": 1, "coreCount": 0}, SECOND, ("1 task with less than a core given one",)),
    ],
)
def test_what_was_measured_is_mended(read, run, length_ns, note):
    found = read(new([new_task("a")], runs=[{"id": "a", **run}]))
    assert (found.graph.length_ns.tolist(), found.notes) == ([length_ns], note)


def test_executions_of_nobody_and_of_the_same_task_twice(read):
    runs = [{"id": name, "runtimeInSeconds": seconds} for name, seconds in (("a", 1), ("z", 1), ("a", 2))]
    found = read(new([new_task("a"), new_task("b")], runs=runs))
    assert found.graph.length_ns.tolist() == [2 * SECOND, 0]
    assert found.notes == (
        "1 task without a runtime taken as 0 s",
        "1 task executed more than once, the last counts",
        "1 execution of an unknown task left out",
    )


def test_a_specification_alone_is_enough(read):
    found = read(new([new_task("a", (), ("x",), ("y",)), new_task("b", ("a", ""), ("y",))]))
    assert found.notes == (
        "2 tasks without a runtime taken as 0 s",
        "2 files without a size taken as empty",
        "1 empty reference left out",
    )


def test_files_listed_twice_and_files_nobody_uses(read):
    files = [{"id": "x", "sizeInBytes": 5}, {"id": "x", "sizeInBytes": 9}, {"id": "idle", "sizeInBytes": 3}]
    found = read(new([new_task("a", (), ("x",))], files, [{"id": "a", "runtimeInSeconds": 1}]))
    assert dict(zip(found.file_names, found.graph.object_bytes.tolist(), strict=True)) == {"x": 9, "idle": 3}
    assert inputs(found, "a") == ["x"]
    assert found.notes == ("1 file with several sizes",)


def test_files_and_commands_in_other_shapes(read):
    task = {
        "name": "a",
        "id": "a",
        "inputFiles": [{"id": "x", "sizeInBytes": 5}, "y", {"name": "z"}],
        "outputFiles": [{"id": "o", "sizeInBytes": 7}],
        "command": "/bin/tool --fast x",
    }
    found = read(new([task], [{"id": "y", "sizeInBytes": 3}]))
    sizes = dict(zip(found.file_names, found.graph.object_bytes.tolist(), strict=True))
    assert sizes == {"o": 7, "x": 5, "y": 3, "z": 0}
    assert found.command_of(0) == ("/bin/tool", "--fast", "x")


def test_nan_as_python_writes_it(read):
    found = read(
        new([new_task("a")], runs=[{"id": "a", "runtimeInSeconds": 1}]).replace(":1}", ':NaN,"avgCPU":-Infinity}')
    )
    assert found.notes == ("1 task without a runtime taken as 0 s",)


def test_line_breaks_and_marks_before_the_text(read):
    assert read(b"\xef\xbb\xbf \n" + new([new_task("a")]).encode()).task_ids == ["a"]


@pytest.mark.parametrize(
    ("name", "program", "kind"),
    [
        ("mProject_ID0000002", "mProject", "mProject"),
        ("fast2bfq_fast2bfq_HEP2_1_ID0000002", "fast2bfq", "fast2bfq"),
        ("blastall_00000017", "wfbench", "blastall"),
        ("NFCORE.KHMER", "echo a\necho b", "NFCORE.KHMER"),
        ("ID0000002", "", "ID0000002"),
        ("a_1", "/usr/bin/a", "a"),
    ],
)
def test_kinds_are_what_names_have_in_common(read, name, program, kind):
    runs = [{"id": name, "runtimeInSeconds": 1, "command": {"program": program}}]
    assert read(new([new_task(name)], runs=runs)).graph.kinds == (kind,)


SPEC = "workflow.specification.tasks"


def _task(**changed):
    return new([{**new_task("a"), **changed}])


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("{", ["w:1: this is not JSON: input data was truncated"]),
        ('{\n"a": 1,\n}', ["w:3: this is not JSON"]),
        ('{"a": NaN\n "b": 1}', ["w:2: this is not JSON"]),
        ("[]", ["w: the file as a whole: expected `object`, got `array`"]),
        ("{}", ["w: workflow: there is none"]),
        ('{"workflow": 3}', ["w: workflow: expected `object | null`, got `int`"]),
        ('{"workflow": {}}', ["w: workflow.tasks: there are no tasks"]),
        (new([]), [f"w: {SPEC}: there are no tasks"]),
        ('{"schemaVersion": "7", "workflow": {}}', ["w: schemaVersion: '7' is not known", "1.5"]),
        ('{"a":' + "[" * 100_000, ["w: lists and objects are nested too deeply"]),
        ('{"a":' * 100_000, ["w: lists and objects are nested too deeply"]),
        ('{"a": NaN, "b":' + "[" * 100_000, ["w: lists and objects are nested too deeply"]),
        (b'{"name": "\xff"}', ["w:1: the text is not UTF-8"]),
        (new([new_task("a"), new_task("b"), new_task("a")]), [f"w: {SPEC}[2].id: two tasks have the id 'a'"]),
        (_task(id=None, name=None), [f"w: {SPEC}[0]: a task needs an id"]),
        (_task(parents=["x", "y"]), [f"w: {SPEC}[0].parents[0]: there is no task with the id 'x'"]),
        (_task(children=["", "y"]), [f"w: {SPEC}[0].children[1]: there is no task with the id 'y'"]),
        (_task(parents=["a"]), [f"w: {SPEC}[0].parents[0]: task 'a' waits for itself"]),
        (_task(parents="a"), [f"w: {SPEC}[0].parents: expected `array | null`, got `str`"]),
        (_task(parents=[{}]), [f"w: {SPEC}[0].parents[0]: expected `int | str`, got `object`"]),
        (_task(inputFiles=[{"sizeInBytes": 3}]), [f"w: {SPEC}[0].inputFiles[0]: a file needs an id"]),
        (old(old_task("a", runtime="fast")), ["w: workflow.tasks[0].runtime: 'fast' is not a number"]),
        (old(old_task("a", cores=10**6)), ["w: workflow.tasks[0].cores: '1000000.0' is more than 32767 cores"]),
        (old(old_task("a", memory="much")), ["w: workflow.tasks[0].memory: 'much' is not a number"]),
        (_task(inputFiles=[3.5]), [f"w: {SPEC}[0].inputFiles[0]: expected"]),
        (
            new([new_task("a", ("b",)), new_task("b", ("a",))]),
            [f"w: {SPEC}[", "].parents[0]: 2 tasks wait for each other"],
        ),
        (new([new_task("a")], [{"sizeInBytes": 3}]), ["w: workflow.specification.files[0]: a file needs an id"]),
        (
            new([new_task("a")], [{"id": "f", "sizeInBytes": 10**25}]),
            ["w: workflow.specification.files[0].sizeInBytes: '1", "is more than"],
        ),
        (
            new([new_task("a")], runs=[{"runtimeInSeconds": 1}]),
            ["w: workflow.execution.tasks[0]: an execution needs the id"],
        ),
        (
            new([new_task("a")], runs=[{"id": "a", "runtimeInSeconds": "abc"}]),
            ["w: workflow.execution.tasks[0].runtimeInSeconds: 'abc' is not a number"],
        ),
        (
            new([new_task("a")], runs=[{"id": "a", "runtimeInSeconds": 1e300}]),
            ["w: workflow.execution.tasks[0].runtimeInSeconds: '1e+300' is more than"],
        ),
        (
            new([new_task("a")], runs=[{"id": "a", "coreCount": 10**6}]),
            ["w: workflow.execution.tasks[0].coreCount: '1000000.0' is more than 32767 cores"],
        ),
        (
            new([new_task("a")], runs=[{"id": "a", "runtimeInSeconds": 1}]).replace(":1}", ":1e999}"),
            ["w: workflow.execution.tasks[0].runtimeInSeconds: number out of range"],
        ),
        (
            new([new_task("a")], runs=[{"id": "a", "runtimeInSeconds": 1}]).replace(":1}", f":{'9' * 5000}}}"),
            ["w: workflow.execution.tasks[0].runtimeInSeconds: integer value out of range"],
        ),
        (old(old_task("a"), old_task("a")), ["w: workflow.tasks[1].id: two tasks have the id 'a'"]),
        (
            old(old_task("a", files=(("f", "sideways", 1),))),
            ["w: workflow.tasks[0].files[0].link: 'sideways' is none of"],
        ),
        (
            old(old_task("a", files=(("f", "input", 1), ("", "input", 1)))),
            ["w: workflow.tasks[0].files[1]: a file needs"],
        ),
        (
            old(old_task("a", files=(("f", "input", "big"),))),
            ["w: workflow.tasks[0].files[0].size: 'big' is not a number"],
        ),
        (
            old(old_task("n", id="1"), old_task("n", id="2"), old_task("z", ("n",), id="3")),
            ["w: workflow.tasks[2].parents[0]: several tasks have the name 'n'"],
        ),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_senseless_files_are_refused_in_one_line_with_a_json_path(refusal, content, parts):
    line = refusal(content)
    assert [part for part in parts if part not in line] == [], line


@pytest.mark.parametrize("path", ["/data/", "/data", "/data/x"])
def test_the_path_of_a_file_is_its_folder_or_all_of_it(read, path):
    files = [{"name": "x", "path": path, "link": "input", "size": 1}]
    tasks = [{"name": "a", "runtime": 1, "parents": [], "files": files}]
    found = read(json.dumps({"schemaVersion": "1.3", "workflow": {"tasks": tasks}}))
    assert list(found.file_names) == ["/data/x"]
