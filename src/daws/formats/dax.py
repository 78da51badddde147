"""DAX, the XML of Pegasus, versions 2.1 to 3.6.

Jobs (also `dag` and `dax` nodes) become tasks, `uses` become inputs and outputs, `child`/`parent` become edges.
Catalogs matter only if they give sizes or programs. expat parses a file piece by piece, so that it is never in memory
as a whole. Declarations of entities are refused, because they could make a small file very large.
"""

import re
import shlex
from collections.abc import Iterable
from xml.parsers import expat

from daws.formats.draft import UNKNOWN, Draft
from daws.formats.values import bytes_in, cores, is_number, megabytes, nanoseconds, number, shown, size, words
from daws.formats.workflow import Workflow
from daws.model.errors import WorkflowError

DEPTH_MAX = 32
BYTES_PER_MB = 1_000_000
TASK_TAGS = frozenset(("job", "dag", "dax"))
STREAM_TAGS = {"stdin": False, "stdout": True, "stderr": True}
NEWER = re.compile(r"\s*([4-9]|[1-9]\d)")
# Profiles of these say what a job needs; one of `env`, say, may be a variable with the same name.
NEED_NAMESPACES = frozenset(("", "pegasus", "condor"))
NEEDS = {
    "runtime": "runtime",
    "cores": "cores",
    "memory": "memory",
    "request_cpus": "cores",
    "request_memory": "memory",
}
# By lower-case link: whether a file is read, and whether it is written.
LINKS = {"input": (True, False), "output": (False, True), "inout": (True, True), "checkpoint": (False, True)}

Attributes = dict[str, str]


def read_dax(path: str, chunks: Iterable[bytes], encoding: str | None = None) -> Workflow:
    """The workflow in a file's bytes; WorkflowError with the line if it makes no sense.

    The encoding is the one that the file declares, unless it is known from elsewhere.
    """
    return _Dax(path, encoding).read(chunks)


class _Dax:
    def __init__(self, path: str, encoding: str | None) -> None:
        self.path = path
        self.draft = Draft(self._error_at)
        self.parser = expat.ParserCreate(encoding)
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.EntityDeclHandler = self._refuse_entity
        self.depth = 0
        self.name = ""
        self.version = ""
        self.in_task = False
        self.has_runtime = False
        self.streams: list[tuple[str, bool]] = []
        self.uses: list[int] = []  # those of the `uses` element that is open
        self.catalog_file = UNKNOWN
        self.executable: tuple[str, ...] | None = None
        self.programs: dict[tuple[str, ...], str] = {}
        self.text: list[str] = []  # of the argument, profile or metadata element that is open
        self.text_key = ""
        self.is_free_text = False
        self.child: str | None = None
        self.children: list[tuple[str, int]] = []  # with their lines
        self.edges: list[tuple[str, str, int]] = []

    def read(self, chunks: Iterable[bytes]) -> Workflow:
        try:
            for chunk in chunks:
                self.parser.Parse(chunk, False)
            self.parser.Parse(b"", True)
        except expat.ExpatError as error:
            message = expat.ErrorString(error.code)
            raise WorkflowError(f"{self.path}:{error.lineno}: this is not well-formed XML: {message}") from None
        except (LookupError, UnicodeError, ValueError) as error:
            # An encoding that Python does not know, or one of several bytes that expat cannot be taught.
            raise self._wrong(str(error)) from error
        for child, line in self.children:
            self._known(child, line)
        for parent, child, line in self.edges:
            self.draft.edge(self._known(parent, line), self._known(child, line), line)
        return self.draft.build(self.name or "workflow", f"DAX {self.version}".rstrip())

    def _known(self, task_id: str, line: int) -> int:
        task = self.draft.ids.get(task_id)
        if task is None:
            raise self._error_at(line, f"there is no job with the id {shown(task_id)}")
        return task

    def _error_at(self, line: int, message: str) -> WorkflowError:
        return WorkflowError(f"{self.path}:{line}: {message}" if line >= 0 else f"{self.path}: {message}")

    def _wrong(self, message: str) -> WorkflowError:
        return self._error_at(self.parser.CurrentLineNumber, message)

    def _refuse_entity(self, name: str, *_: object) -> None:
        raise self._wrong(f"the entity {shown(name)} is declared here; workflow files may not declare entities")

    # -- elements ------------------------------------------------------------------------------------------------------

    def _start(self, tag: str, attributes: Attributes) -> None:
        if ":" in tag:
            tag = tag.rpartition(":")[2]
        self.depth += 1
        if self.depth > 2:
            if self.depth > DEPTH_MAX:
                raise self._wrong(f"elements are nested more than {DEPTH_MAX} deep")
            if tag == "uses":
                self._on_uses(attributes)
            elif tag == "parent":
                self._on_parent(attributes)
            else:
                self._on_detail(tag, attributes)
        elif self.depth == 1:
            if tag != "adag":
                raise self._wrong(f"the outermost element is <{tag[:40]}>, not the <adag> of a DAX file")
            self.name, self.version = attributes.get("name", ""), attributes.get("version", "")
            if NEWER.match(self.version):
                raise self._wrong(f"version {shown(self.version)} of DAX is not known; it is 2.1 to 3.6")
        elif tag in TASK_TAGS:
            self._on_task(tag, attributes)
        elif tag == "child":
            self.child = self._needed(tag, attributes, "ref")
            self.children.append((self.child, self.parser.CurrentLineNumber))
        elif tag in ("file", "filename"):
            self.catalog_file = self.draft.files[self._file_name(tag, attributes)]
            self._set_size(attributes)
        elif tag == "executable":
            self.executable = _logical_name(attributes)

    def _end(self, tag: str) -> None:
        self.depth -= 1
        if self.depth == 1:
            self._close(tag.rpartition(":")[2])
        elif self.depth == 2:
            self.uses.clear()
            if self.text_key:
                self._on_text()
        elif self.text_key and self.depth == 3 and self.text_key != "argument":
            self._on_text()

    def _close(self, tag: str) -> None:
        if tag in TASK_TAGS:
            self._finish_task()
        self.child = self.executable = None
        self.catalog_file = UNKNOWN

    def _on_task(self, tag: str, attributes: Attributes) -> None:
        draft = self.draft
        task_id = self._needed(tag, attributes, "id")
        name = attributes.get("name") or attributes.get("file") or task_id
        task = draft.add_task(task_id, name, name, self.parser.CurrentLineNumber)
        self.in_task, self.has_runtime = True, False
        self.streams.clear()
        for key in ("runtime", "cores", "memory"):
            if key in attributes:
                self._set_need(key, attributes[key])
        if self.programs:
            logical = _logical_name(attributes)
            draft.programs[task] = self.programs.get(logical) or self.programs.get(logical[:1], "")

    def _finish_task(self) -> None:
        draft = self.draft
        if not self.has_runtime:
            draft.notes.add("runtime-missing")
        if self.streams:
            first = len(draft.use_task)
            while first and draft.use_task[first - 1] == draft.task_count - 1:
                first -= 1
            listed = set(zip(draft.use_file[first:], draft.use_writes[first:], strict=True))
            for name, writes in self.streams:
                if (draft.files[name], int(writes)) not in listed:
                    draft.use(name, writes)
        self.in_task = False

    def _on_uses(self, attributes: Attributes) -> None:
        if not self.in_task:
            return  # used by a transformation
        name = attributes.get("file") or attributes.get("name") or self._file_name("uses", attributes)
        link = attributes.get("link", "")
        if link not in LINKS:
            link = link.strip().lower()
            if not link or link == "none":
                is_program = attributes.get("executable") == "true" or attributes.get("type") == "executable"
                if not is_program:
                    self.draft.notes.add("link")
                    return
                link = "input"
            elif link not in LINKS:
                raise self._wrong(f"<uses> has the link {shown(link)}; links are {', '.join(LINKS)}")
        size_bytes = self._size(attributes["size"]) if "size" in attributes else UNKNOWN
        reads, writes = LINKS[link]
        self.uses.clear()
        if reads:
            self.uses.append(self.draft.use(name, False, size_bytes))
        if writes:
            self.uses.append(self.draft.use(name, True, size_bytes))

    def _on_parent(self, attributes: Attributes) -> None:
        if self.child is None:
            raise self._wrong("<parent> stands outside of <child>")
        self.edges.append((self._needed("parent", attributes, "ref"), self.child, self.parser.CurrentLineNumber))

    def _on_detail(self, tag: str, attributes: Attributes) -> None:
        if tag in ("file", "filename"):
            if self.text_key == "argument":
                self._add_text(shlex.quote(self._file_name(tag, attributes)))
        elif tag in TASK_TAGS or tag == "child":
            raise self._wrong(f"<{tag}> stands inside of another element")
        elif tag == "argument":
            self._listen("argument")
        elif tag == "metadata":
            self._listen(attributes.get("key", "").lower(), is_free=True)
        elif tag == "profile":
            if attributes.get("namespace", "").lower() in NEED_NAMESPACES:
                self._listen(attributes.get("key", "").lower())
        elif tag in STREAM_TAGS and self.in_task:
            self.streams.append((self._file_name(tag, attributes), STREAM_TAGS[tag]))
        elif tag == "pfn" and self.executable is not None and "url" in attributes:
            self.programs.setdefault(self.executable, attributes["url"].removeprefix("file://"))
            self.programs.setdefault(self.executable[:1], attributes["url"].removeprefix("file://"))

    # -- what stands between tags --------------------------------------------------------------------------------------

    def _listen(self, key: str, is_free: bool = False) -> None:
        self.text_key = key
        self.is_free_text = is_free
        self.text.clear()
        self.parser.CharacterDataHandler = self._add_text

    def _add_text(self, text: str) -> None:
        self.text.append(text)

    def _on_text(self) -> None:
        self.parser.CharacterDataHandler = None
        key, text = self.text_key, "".join(self.text).strip()
        self.text_key = ""
        if key == "size":
            self._set_size({"size": text})
        elif not self.in_task:
            return
        elif key == "argument":
            draft = self.draft
            draft.programs[-1] = draft.programs[-1] or draft.names[-1]
            draft.arguments[-1] = words(text)
        elif key in NEEDS:
            self._set_hint(NEEDS[key], text)

    def _set_size(self, attributes: Attributes) -> None:
        if "size" not in attributes:
            return
        if self.uses:
            size_bytes = self._size(attributes["size"])
            for use in self.uses:
                self.draft.use_bytes[use] = size_bytes
        elif self.catalog_file != UNKNOWN:
            self.draft.listed_bytes[self.catalog_file] = self._size(attributes["size"])

    # -- values --------------------------------------------------------------------------------------------------------

    def _set_hint(self, key: str, text: str) -> None:
        """A need by profile or metadata. HTCondor also takes units and expressions; only it can work out the latter."""
        if key == "memory":
            text = megabytes(text)
        if (key != "runtime" or self.is_free_text) and not is_number(text):
            self.draft.notes.add("need")
            return
        self._set_need(key, text)

    def _set_need(self, key: str, text: str) -> None:
        draft = self.draft
        try:
            value = number(text)
            if value is None:
                return
            if key == "runtime":
                self.has_runtime = True
                if value < 0:
                    draft.notes.add("runtime-negative")
                draft.length_ns[-1] = nanoseconds(max(value, 0.0))
            elif key == "cores":
                if value < 1:
                    draft.notes.add("cores")
                draft.cores[-1] = cores(value)
            else:
                draft.memory_bytes[-1] = size(max(value, 0.0) * BYTES_PER_MB)
        except ValueError as error:
            raise self._wrong(f"{key} {shown(text)} {error}") from None

    def _size(self, text: str) -> int:
        if text.isdecimal() and len(text) < 18:
            return int(text)
        try:
            value = bytes_in(text)
            if value is not None and value < 0:
                self.draft.notes.add("size-negative")
            return UNKNOWN if value is None or value < 0 else size(value)
        except ValueError as error:
            raise self._wrong(f"size {shown(text)} {error}") from None

    def _needed(self, tag: str, attributes: Attributes, key: str) -> str:
        value = attributes.get(key)
        if not value:
            raise self._wrong(f"<{tag}> needs the attribute {key}")
        return value

    def _file_name(self, tag: str, attributes: Attributes) -> str:
        name = attributes.get("name") or attributes.get("file")
        if not name:
            raise self._wrong(f"<{tag}> needs the attribute name or file")
        return name


def _logical_name(attributes: Attributes) -> tuple[str, ...]:
    return tuple(attributes.get(key, "") for key in ("name", "namespace", "version"))
