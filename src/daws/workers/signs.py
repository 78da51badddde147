"""Whether a run has done anything that concerns those after it."""


class Signs:
    """Raised where it is seen (something printed, moved, forked), so that after most runs one look is enough."""

    __slots__ = ("any",)

    def __init__(self) -> None:
        self.any = False
