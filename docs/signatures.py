"""Signatures of the API reference, without the parameters that are only there to answer mistakes.

An extension of griffe (see mkdocs.yml). Some functions take `*more` and `**others` to say in one line what to write
instead of a name from another library. A reader of the reference has no use for them.
"""

from typing import Any

from griffe import Extension, Function, ParameterKind

ONLY_FOR_MISTAKES = {"more": ParameterKind.var_positional, "others": ParameterKind.var_keyword}


class WithoutMistakes(Extension):  # type: ignore[misc, unused-ignore]
    """Drop `*more` and `**others` from every signature."""

    def on_function(self, *, func: Function, **_: Any) -> None:
        for name, kind in ONLY_FOR_MISTAKES.items():
            if name in func.parameters and func.parameters[name].kind is kind:
                del func.parameters[name]
