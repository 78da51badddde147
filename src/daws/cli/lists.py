"""Strategies and decisions, as text and as JSON documents."""

import inspect
import shutil
import textwrap

from daws.cli.options import closest
from daws.cli.table import as_json, grid
from daws.model.errors import StrategyError
from daws.strategy import (
    DECISIONS,
    DEFAULT,
    PRESETS,
    Parameter,
    Preset,
    answers,
    describe,
    parameters_of,
    parse_strategy,
)
from daws.strategy.answer import format_value
from daws.strategy.decisions import Strategy

QUESTIONS = {
    "acquire": "which pilots are asked for: where, how many, how large, for how long?",
    "bind": "is a task tied to a pilot before that pilot runs?",
    "assign": "which node receives each submitted task?",
    "place": "a task became ready here: keep it, share it, push it?",
    "order": "which ready task runs first?",
    "match": "may this executor run this task?",
    "balance": "who moves work, when, how much?",
    "relax": "when does a dedicated task become shared?",
    "replicate": "when does a second copy run?",
    "cache": "which moved data is kept?",
    "adapt": "what changes while running?",
}


def show_strategies(name: str | None, is_json: bool = False) -> int:
    """Print all strategies, or one, or the answers to a decision."""
    if name is None:
        print(as_json(_overview_document()) if is_json else _overview())
    elif name in DECISIONS:
        print(as_json(_decision_document(name)) if is_json else _decision(name))
    else:
        try:
            strategy = parse_strategy(name)
        except StrategyError as error:
            if ":" in name:
                raise
            meant = closest(name, [*PRESETS, *DECISIONS])
            hint = f"; did you mean {meant}?" if meant else ""
            raise StrategyError(f"{error}; decisions are {', '.join(DECISIONS)}{hint}") from error
        print(as_json(_document(strategy)) if is_json else _in_full(strategy))
    return 0


def _overview_document() -> dict[str, object]:
    decisions = [{"decision": one, "question": QUESTIONS[one], "answers": [*answers(one)]} for one in DECISIONS]
    return {"strategies": [_document(preset.strategy) for preset in PRESETS.values()], "decisions": decisions}


def _document(strategy: Strategy) -> dict[str, object]:
    """A strategy with all its answers; parameters are texts as they would be typed."""
    preset = _preset(strategy)
    return {
        "strategy": strategy.name,
        "is_default": strategy.name == DEFAULT,
        "summary": preset.summary,
        "paper": preset.paper,
        "decisions": {row.decision: {"answer": row.answer, "parameters": row.parameters} for row in describe(strategy)},
    }


def _decision_document(decision: str) -> dict[str, object]:
    found = [
        {
            "answer": name,
            "about": inspect.getdoc(cls) or "",
            "used_by": _users(decision, cls),
            "parameters": [
                {"key": one.key, "default": _defaults(cls)[one.key], "meaning": _help(one)}
                for one in parameters_of(cls)
            ],
        }
        for name, cls in answers(decision).items()
    ]
    return {"decision": decision, "question": QUESTIONS[decision], "answers": found}


def _preset(strategy: Strategy) -> Preset:
    return PRESETS[strategy.name.partition(":")[0].strip()]


def _users(decision: str, cls: type) -> list[str]:
    return [preset.name for preset in PRESETS.values() if type(getattr(preset.strategy, decision)) is cls]


def _overview() -> str:
    lines = ["STRATEGIES", ""]
    for preset in PRESETS.values():
        mark = " (the default)" if preset.name == DEFAULT else ""
        lines.append(f"{preset.name}{mark}")
        lines.append(_wrapped(f"{preset.summary} [{preset.paper}]", "    "))
        lines.append(_wrapped(_short(preset.strategy), "    "))
        lines.append("")
    lines += ["DECISIONS AND THEIR ANSWERS", ""]
    rows = [(decision, QUESTIONS[decision], ", ".join(answers(decision))) for decision in DECISIONS]
    lines.append(grid([(decision, question) for decision, question, _ in rows]))
    lines.append("")
    width = max(map(len, DECISIONS)) + 1
    lines += [_wrapped(f"{decision + '=':<{width}} {names}", "", " " * (width + 1)) for decision, _, names in rows]
    lines += [
        "",
        "Change what you like: --strategy flds:order=critical-path,t=0.2",
        "'daws strategies NAME' shows one strategy, or the answers to one decision, in full.",
    ]
    return "\n".join(lines)


def _short(strategy: Strategy) -> str:
    """A line with the answers and those parameters that differ from the answer's own defaults."""
    parts = []
    for row in describe(strategy):
        defaults = _defaults(type(getattr(strategy, row.decision)))
        changed = [f"{key}={value}" for key, value in row.parameters.items() if defaults[key] != value]
        parts.append(f"{row.decision}={row.answer}" + (f"({','.join(changed)})" if changed else ""))
    return " ".join(parts)


def _defaults(cls: type) -> dict[str, str]:
    return {one.key: "" if one.default is None else format_value(one.default) for one in parameters_of(cls)}


def _in_full(strategy: Strategy) -> str:
    preset = _preset(strategy)
    lines = [strategy.name, _wrapped(f"{preset.summary} [{preset.paper}]", "    "), ""]
    for row in describe(strategy):
        cls = type(getattr(strategy, row.decision))
        lines.append(f"{row.decision}={row.answer}".ljust(28) + QUESTIONS[row.decision])
        lines.append(_about(cls, row.parameters))
    return "\n".join(lines).rstrip()


def _decision(decision: str) -> str:
    lines = [f"{decision}: {QUESTIONS[decision]}", ""]
    for name, cls in answers(decision).items():
        users = _users(decision, cls)
        lines.append(f"{decision}={name}".ljust(28) + (f"used by {', '.join(users)}" if users else ""))
        lines.append(_about(cls, _defaults(cls)))
    return "\n".join(lines).rstrip()


def _about(cls: type, values: dict[str, str]) -> str:
    """The docstring of an answer, and its parameters with the values in force."""
    paragraphs = (inspect.getdoc(cls) or "").split("\n\n")
    lines = [_wrapped(" ".join(paragraph.split()), "    ") for paragraph in paragraphs]
    if values:
        rows = [(f"{one.key}={values[one.key]}", _help(one)) for one in parameters_of(cls)]
        lines.append(grid(rows, indent="      "))
    return "\n".join((*lines, ""))


def _help(parameter: Parameter) -> str:
    return parameter.help + (f" ({' | '.join(parameter.words)})" if parameter.words else "")


def _wrapped(text: str, first: str, rest: str | None = None) -> str:
    width = max(40, min(100, shutil.get_terminal_size((100, 24)).columns))
    return textwrap.fill(
        text, width, initial_indent=first, subsequent_indent=first if rest is None else rest, break_on_hyphens=False
    )
