"""Strategies as text: `name[:key=value,…]`, where keys are decisions or parameters of the answers chosen.

`place.t=0.5` sets the parameter `t` of one answer alone; `t=0.5` sets that of every answer that has one.
"""

from typing import Any, NamedTuple

from daws.model.errors import StrategyError
from daws.strategy.answer import Value, format_value, parameters_of, values_of
from daws.strategy.decisions import Strategy
from daws.strategy.fitting import check_fitting
from daws.strategy.presets import PRESETS
from daws.strategy.registry import DECISIONS, answer_class, answer_name, answers

TEXT_LENGTH_MAX = 2000


class StrategyRow(NamedTuple):
    """The answer of a strategy to one question; parameters as a user would type them."""

    decision: str
    answer: str
    parameters: dict[str, str]


def parse_strategy(text: str) -> Strategy:
    """The strategy that a text names: a preset, with changes.

    A parameter is set in every chosen answer that has one of this name. The form `place.t`, with a decision before the
    parameter, sets it in that answer alone and wins over the short form. An answer that replaces another takes over the
    settings that they share. Answers that contradict each other are refused.
    """
    if len(text) > TEXT_LENGTH_MAX:
        raise StrategyError(f"a strategy is written in at most {TEXT_LENGTH_MAX} characters, not {len(text)}")
    name, colon, rest = text.strip().partition(":")
    preset = PRESETS.get(name.strip())
    if preset is None:
        raise StrategyError(f"unknown strategy {_shown(name)}; there are {', '.join(PRESETS)}")
    if not colon:
        return preset.strategy
    given = _read_pairs(text, rest)
    old = {decision: getattr(preset.strategy, decision) for decision in DECISIONS}
    chosen = {decision: type(answer) for decision, answer in old.items()}
    chosen |= {decision: answer_class(decision, given.pop(decision)) for decision in DECISIONS if decision in given}
    _check_keys(given, chosen)
    inherited = {key: value for answer in reversed(old.values()) for key, value in values_of(answer).items()}
    built = {decision: _build(decision, cls, given, inherited) for decision, cls in chosen.items()}
    strategy = Strategy(name=text.strip(), **built)
    check_fitting(strategy)
    return strategy


def describe(strategy: Strategy) -> list[StrategyRow]:
    """The answer of the strategy to each question."""
    return [_row(decision, getattr(strategy, decision)) for decision in DECISIONS]


def format_strategy(strategy: Strategy) -> str:
    """The whole strategy as text that `parse_strategy` reads back, with every answer and every parameter spelled out.

    StrategyError if one of the answers is not registered, because its name could not be read back.
    """
    preset = strategy.name.partition(":")[0].strip()
    pairs: list[str] = []
    parameters: dict[str, dict[str, str]] = {}  # key -> decision -> value
    for decision in DECISIONS:
        answer = getattr(strategy, decision)
        name = answer_name(decision, answer)
        if answers(decision).get(name) is not type(answer):
            raise StrategyError(
                f"{decision}={name} cannot be written down, it is not registered; call register({decision!r}, …) first"
            )
        pairs.append(f"{decision}={name}")
        for key, value in values_of(answer).items():
            parameters.setdefault(key, {})[decision] = _exact(value)
    for key, by_decision in parameters.items():
        if len(set(by_decision.values())) == 1:
            pairs.append(f"{key}={next(iter(by_decision.values()))}")
        else:
            pairs += [f"{decision}.{key}={value}" for decision, value in by_decision.items()]
    return f"{preset if preset in PRESETS else next(iter(PRESETS))}:{','.join(pairs)}"


def _exact(value: Value) -> str:
    """The value as a user would type it, with as many digits as are needed to read the same number back."""
    text = format_value(value)
    return text if not isinstance(value, float) or float(text) == value else repr(value)


def _row(decision: str, answer: object) -> StrategyRow:
    parameters = {key: format_value(value) for key, value in values_of(answer).items()}
    return StrategyRow(decision, answer_name(decision, answer), parameters)


def _read_pairs(text: str, rest: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for pair in rest.split(","):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not key or not value:
            raise StrategyError(f"strategy {_shown(text)}: expected key=value, not {_shown(pair.strip())}")
        if key in given:
            raise StrategyError(f"strategy {_shown(text)}: {_shown(key)} is given twice")
        given[key] = value
    return given


def _check_keys(given: dict[str, str], chosen: dict[str, type]) -> None:
    known = [parameter.key for cls in chosen.values() for parameter in parameters_of(cls)]
    known = list(dict.fromkeys(known))
    of_one = [f"{decision}.{parameter.key}" for decision, cls in chosen.items() for parameter in parameters_of(cls)]
    for key in given:
        if key not in known and key not in of_one:
            from difflib import get_close_matches

            close = get_close_matches(key, of_one if "." in key else [*DECISIONS, *known], 1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise StrategyError(
                f"unknown key {_shown(key)}{hint}; decisions are {', '.join(DECISIONS)}; "
                f"the answers chosen have the parameters {', '.join(known) or 'none'}"
            )


def _build(decision: str, cls: type, given: dict[str, str], inherited: dict[str, Value]) -> Any:
    """An answer with the given values, else the values of the preset under the same name, else its defaults."""
    values: dict[str, Value] = {}
    for parameter in parameters_of(cls):
        key = parameter.key
        typed = given.get(f"{decision}.{key}", given.get(key))
        if typed is not None:
            values[parameter.field] = parameter.parse(typed)
        elif key in inherited and parameter.fits(inherited[key]):
            values[parameter.field] = inherited[key]
    return cls(**values)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
