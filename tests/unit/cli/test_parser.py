"""The parser repeats a few names so that it need not import where they come from; they must agree."""

from daws.cli import parser
from daws.cli.lists import QUESTIONS
from daws.sim.profiles import PROFILES
from daws.strategy import DECISIONS, DEFAULT


def test_defaults_are_those_of_the_layers_below():
    assert parser.STRATEGY == DEFAULT
    assert tuple(PROFILES) == parser.PROFILES
    assert tuple(QUESTIONS) == DECISIONS


def test_defaults_of_sim():
    arguments = parser.make_parser().parse_args(["sim", "bot"])
    assert (arguments.strategy, arguments.profile, arguments.seed) == ("daws", "measured", 0)
    assert (arguments.group, arguments.settings, arguments.context, arguments.plot) == ([], [], [], None)
