"""Word counts with programs that every system has: split, count each part, add up, and look at the result in Python.

Run it with `python examples/commands.py`, or give it a text file of your own.
"""

import sys
import tempfile
from pathlib import Path

import daws

PARTS = 4
TEXT = "the cat and the dog and the bird sat by the door\n" * 2000


def most_common(table: daws.File) -> list[tuple[str, int]]:
    """A function that reads what a command made."""
    with table.open("r") as lines:
        pairs = [line.split() for line in lines]
    return [(word, int(count)) for count, word in pairs[:3]]


def count_words(cluster: daws.Cluster, text: daws.File) -> list[tuple[str, int]]:
    names = [f"part-{number:02}" for number in range(PARTS)]
    parts = cluster.run(["split", "-n", f"l/{PARTS}", "-d", text, "part-"], outputs=names)
    files: list[daws.Future[daws.File]] = []
    for name, part in parts.outputs.items():
        sort = cluster.run("tr -s '[:space:]' '\\n' | sort", stdin=part, stdout=daws.Out(f"{name}.sorted"))
        files += sort.outputs.values()
    table = cluster.run("sort -m *.sorted | uniq -c | sort -rn > table.txt", inputs=files, outputs=["table.txt"])
    return cluster.submit(most_common, table.outputs["table.txt"]).result()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, daws.Cluster() as cluster:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder, "text.txt")
        if len(sys.argv) == 1:
            path.write_text(TEXT)
        for word, count in count_words(cluster, daws.File(path)):
            print(f"{count:8,} {word}")


if __name__ == "__main__":
    main()
