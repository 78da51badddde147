"""Scheduling as a list of decisions: the questions (`decisions`), their answers (one file each), and the published
systems as combinations of answers (`presets`).

Everything here is pure: it may not know clocks, sockets, threads or the core that asks; randomness is handed in. A new
idea is one class with the methods of its protocol, and `register(decision, name, cls)`.
"""

from daws.strategy.answer import Parameter, ParameterizedAnswer, parameters_of
from daws.strategy.fitting import check_fitting, lacks_live
from daws.strategy.presets import DEFAULT, PRESETS, Preset
from daws.strategy.registry import DECISIONS, answers, register
from daws.strategy.rng import SplitMix64, hash_u64
from daws.strategy.spec import StrategyRow, describe, format_strategy, parse_strategy

__all__ = [
    "parse_strategy",
    "describe",
    "format_strategy",
    "check_fitting",
    "lacks_live",
    "StrategyRow",
    "DEFAULT",
    "PRESETS",
    "Preset",
    "DECISIONS",
    "answers",
    "register",
    "ParameterizedAnswer",
    "Parameter",
    "parameters_of",
    "SplitMix64",
    "hash_u64",
]
