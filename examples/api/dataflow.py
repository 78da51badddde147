"""Implicit dataflow: calls of decorated functions are tasks, and what they take from each other is the graph."""

import daws


@daws.task
def count(text: str) -> dict[str, int]:
    words = text.split()
    return {word: words.count(word) for word in words}


@daws.task(retries=2)
def merge(counts: list[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in counts:
        for word, number in one.items():
            total[word] = total.get(word, 0) + number
    return total


@daws.task
def both(text: str) -> tuple[str, int]:
    return text.upper(), len(text)


print(count.plain("no cluster is needed for this"))

with daws.Cluster(workers=2):
    lines = ["a rose is a rose", "is a rose"]
    print(merge([count(line) for line in lines]).result())  # prints: {'a': 3, 'rose': 3, 'is': 2}

    urgent = merge.options(priority=10, timeout=60)
    print(urgent([count("quick")]).result())  # prints: {'quick': 1}

    upper, length = both.options(outputs=2)("rose")
    print(upper.result(), length.result())  # prints: ROSE 4
