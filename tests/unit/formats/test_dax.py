"""DAX: what it means, what is mended, what is refused."""

import pytest

from tests.unit.formats.samples import DIAMOND, HEAD, dax, edges, inputs, jobs

SECOND = 1_000_000_000


def test_a_small_workflow(read):
    found = read(DIAMOND)
    graph = found.graph
    assert (found.name, found.format, list(found.task_ids)) == ("test", "DAX 2.1", ["a", "b", "c", "d"])
    assert [graph.kinds[kind] for kind in graph.kind] == ["split", "work", "work", "join"]
    assert graph.length_ns.tolist() == [1.5 * SECOND, 2 * SECOND, 0.25 * SECOND, 3 * SECOND]
    assert graph.cores.tolist() == [1, 1, 4, 1]
    assert edges(found) == {("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")}
    assert list(found.file_names) == ["left", "right", "", "out", "in"]
    assert graph.object_bytes.tolist() == [10, 20, 0, 7, 100]
    assert inputs(found, "d") == ["out", ""]  # b makes nothing that d reads: d only waits for it
    assert found.notes == ("1 edge without data",)


def test_version_3_names_files_and_commands_differently(read):
    found = read("""<adag version="3.6" name="three">
  <file name="f.a"><metadata key="size">1000</metadata><pfn url="file:///x/f.a" site="local"/></file>
  <executable namespace="d" name="keg" version="2.0"><pfn url="file:///opt/keg" site="local"/></executable>
  <transformation name="t"><uses name="keg"/></transformation>
  <job id="i" namespace="d" name="keg" version="2.0">
    <argument>-a top "two words" -i <file name="f.a"/> -o <file name="f b"/></argument>
    <profile namespace="pegasus" key="runtime">60</profile>
    <profile namespace="pegasus" key="cores">2</profile>
    <profile namespace="pegasus" key="memory">512</profile>
    <stdout name="log" link="output"/>
    <uses name="f.a" link="input"/>
    <uses name="f b" link="OUTPUT"><metadata key="size">77</metadata></uses>
    <invoke when="at_end">/bin/echo</invoke>
  </job>
  <dax id="j" file="inner.dax"><uses name="log" link="input"/><uses name="exe" executable="true"/></dax>
</adag>""")
    assert found.command_of(0) == ("/opt/keg", "-a", "top", "two words", "-i", "f.a", "-o", "f b")
    assert found.command_of(1) == ()
    graph = found.graph
    assert (graph.length_ns[0], graph.cores[0], found.memory_bytes[0]) == (60 * SECOND, 2, 512_000_000)
    sizes = dict(zip(found.file_names, graph.object_bytes.tolist(), strict=True))
    assert sizes == {"f b": 77, "log": 0, "f.a": 1000, "exe": 0}
    assert edges(found) == {("i", "j")}
    assert found.task_names[1] == "inner.dax"
    assert "1 edge known from files alone" in found.notes
    assert "1 task without a runtime taken as 0 s" in found.notes


def test_prefixes_and_white_space_before_the_declaration(read):
    found = read('\n <?xml version="1.0"?><p:adag xmlns:p="x"><p:job id="a" name="n" runtime="1"/></p:adag>')
    assert found.task_ids == ["a"]


def test_other_encodings(read):
    body = '<?xml version="1.0" encoding="{}"?><adag><job id="\u00e4" name="n" runtime="1"/></adag>'
    for encoding in ("utf-16", "iso-8859-1", "cp1252"):
        assert read(body.format(encoding).encode(encoding)).task_ids == ["\u00e4"]
    # Windows shells write UTF-16 and leave the declaration as it was.
    assert read(body.format("UTF-8").encode("utf-16")).task_ids == ["\u00e4"]


@pytest.mark.parametrize(
    ("runtime", "length_ns", "note"),
    [
        ("0,01", 10_000_000, ()),
        ("-1.64", 0, ("1 negative runtime taken as 0 s",)),
        ("", 0, ("1 task without a runtime taken as 0 s",)),
        ("nan", 0, ("1 task without a runtime taken as 0 s",)),
    ],
)
def test_runtimes_are_mended(read, runtime, length_ns, note):
    found = read(dax(jobs("a", runtime=runtime)))
    assert (found.graph.length_ns.tolist(), found.notes) == ([length_ns], note)


@pytest.mark.parametrize(
    ("profile", "cores", "memory_bytes", "notes"),
    [
        ('namespace="condor" key="request_memory">2 GB', 1, 2_048_000_000, ()),
        ('namespace="condor" key="REQUEST_MEMORY">512', 1, 512_000_000, ()),
        ('namespace="condor" key="request_cpus">4', 4, 0, ()),
        ('namespace="env" key="MEMORY">4G', 1, 0, ()),
        ('namespace="env" key="CORES">7', 1, 0, ()),
        ('namespace="condor" key="request_cpus">ifthenelse(x, 1, 2)', 1, 0, ("1 need that is no number left out",)),
    ],
)
def test_profiles_say_needs_as_htcondor_takes_them_and_variables_do_not(read, profile, cores, memory_bytes, notes):
    found = read(dax(f'<job id="a" name="a" runtime="1"><profile {profile}</profile></job>'))
    assert (found.graph.cores[0], found.memory_bytes[0], found.notes) == (cores, memory_bytes, notes)


def test_metadata_is_free_text(read):
    found = read(dax('<job id="a" name="a" runtime="1"><metadata key="runtime">long</metadata></job>'))
    assert (found.graph.length_ns[0], found.notes) == (SECOND, ("1 need that is no number left out",))


def test_thousands_of_files_per_task(read):
    uses = "".join(f'<uses file="f{number}" link="input" size="1"/>' for number in range(5000))
    found = read(dax(f'<job id="a" name="a" runtime="1">{uses}</job>'))
    assert found.graph.input_bytes == 5000


BOMB = """<?xml version="1.0"?>
<!DOCTYPE adag [
 <!ENTITY a "ha">
 <!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
]>
<adag name="&b;"/>
"""


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ('<adag version="4.0"><job id="a" name="a"/></adag>', ["w:1: version '4.0' of DAX is not known"]),
        (BOMB, ["w:3:", "entity 'a'"]),
        ('<!DOCTYPE adag [<!ENTITY x SYSTEM "file:///etc/passwd">]><adag>&x;</adag>', ["w:1:", "entity 'x'"]),
        ("<adag>\n&y;</adag>", ["w:2:", "undefined entity"]),
        (HEAD + "<job id='a'", ["w:3:", "not well-formed"]),
        (HEAD + "</job>", ["w:3:", "mismatched tag"]),
        ("<html/>", ["w:1:", "<html>", "<adag>"]),
        (HEAD + "</adag>", ["w: there are no tasks"]),
        (dax("<x>" * 1000 + "</x>" * 1000), ["w:3:", "nested more than 32 deep"]),
        (dax("<job id='a'>" + "<uses name='f' link='input'>" * 100), ["w:3:", "nested more than 32 deep"]),
        (dax(jobs("a", "b", "a")), ["w:5:", "two tasks have the id 'a'"]),
        (dax("<job name='a'/>"), ["w:3:", "<job> needs the attribute id"]),
        (dax("<job id='a'><job id='b'/></job>"), ["w:3:", "<job> stands inside"]),
        (dax("<job id='a'><uses link='input'/></job>"), ["w:3:", "<uses> needs the attribute name or file"]),
        (dax("<job id='a'><uses name='f' link='sideways'/></job>"), ["w:3:", "'sideways'", "input, output"]),
        (dax("<job id='a'>\n<uses name='f' link='input' size='big'/></job>"), ["w:4:", "size 'big' is not a number"]),
        (dax("<job id='a'><uses name='f' link='input' size='1e30'/></job>"), ["w:3:", "size '1e30' is more than"]),
        (dax("<job id='a'><uses name='f' link='input' size='" + "9" * 5000 + "'/></job>"), ["w:3:", "is not a finite"]),
        (dax(jobs("a", runtime="1e999")), ["w:3:", "runtime '1e999' is not a finite number"]),
        (dax(jobs("a", runtime="1e12")), ["w:3:", "runtime '1e12' is more than"]),
        (dax(jobs(*map(str, range(9)), runtime="4e9")), ["w: the lengths add up to more than 2**62 ns"]),
        (dax("<job id='a'><profile key='runtime'>soon</profile></job>"), ["w:3:", "runtime 'soon' is not a number"]),
        (dax(jobs("a", runtime="soon")), ["w:3:", "runtime 'soon' is not a number"]),
        (dax("<job id='a' cores='40000'/>"), ["w:3:", "cores '40000' is more than 32767"]),
        (dax("<a><parent ref='a'/></a>"), ["outside of <child>"]),
        (dax(jobs("a") + "<child><parent ref='a'/></child>"), ["w:4:", "<child> needs the attribute ref"]),
        (dax(jobs("a") + "<child ref='a'>\n<parent ref='z'/></child>"), ["w:5:", "no job with the id 'z'"]),
        (dax(jobs("a") + "<child ref='z'><parent ref='a'/></child>"), ["w:4:", "no job with the id 'z'"]),
        (dax(jobs("a") + "<child ref='z'/>"), ["w:4:", "no job with the id 'z'"]),
        (dax(jobs("a") + "<child ref='a'><parent ref='a'/></child>"), ["w:4:", "'a' waits for itself"]),
        (
            dax(jobs("a", "b") + "<child ref='a'><parent ref='b'/></child>\n<child ref='b'><parent ref='a'/></child>"),
            ["w:6:", "2 tasks wait for each other in a circle: 'b' -> 'a' -> 'b'"],
        ),
        ('<?xml version="1.0" encoding="klingon"?><adag/>', ["w:1:", "klingon"]),
        (HEAD.encode() + b"<job id='\xff\xff'/></adag>", ["w:3:", "not well-formed"]),
        (dax(jobs("x" * 10_000, "x" * 10_000)), ["w:4:", "xxx..."]),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_senseless_files_are_refused_in_one_line_with_the_line_number(refusal, content, parts):
    line = refusal(content)
    assert [part for part in parts if part not in line] == [], line
