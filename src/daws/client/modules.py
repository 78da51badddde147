"""The client's own modules, for nodes that do not have them: which are sent, and when they have to be sent anew."""

import sys
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from daws.client.functions import Functions
from daws.data.local import LocalModule, LocalModules, imports_in
from daws.data.revisions import own as revisions
from daws.data.shipping import Shipment
from daws.data.uses import is_by_value, names_in
from daws.model.errors import UsageError
from daws.runs.timeline import Timeline


class OwnModules:
    """All that are loaded, with what they import; or those that `wanted` names, or none if it is False."""

    def __init__(self, wanted: bool | Iterable[str]) -> None:
        self.count = -1
        """How many modules there were when we last looked."""
        self._known = LocalModules()
        self._wanted: tuple[str, ...] | None = None
        self._named: set[str] = set()  # imported inside of functions that travel by value
        self._seen: dict[int, Any] = {}  # their code, by identity
        self._sent: dict[str, LocalModule] = {}
        self._is_off = wanted is False
        given: Any = wanted
        if isinstance(given, str) or not isinstance(given, bool | Iterable):
            raise UsageError(f"modules={wanted!r}: give True, False or a list of names")
        if not isinstance(wanted, bool):
            self._wanted = tuple(wanted)
            for name in self._wanted:
                if self._known.get(str(name)) is None:
                    raise UsageError(f"modules: there is no module {name!r} with source code of your own")

    def have_changed(self, function: Callable[..., Any]) -> bool:
        """Has anything been loaded, or loaded anew, since we last looked, or does this function name something new?"""
        if self._is_off:
            self.count = len(sys.modules)
            return False
        changed = self.count != len(sys.modules)
        if not changed:
            modules = sys.modules
            for name, sent in self._sent.items():
                if sent.spec is not None and not sent.is_of(getattr(modules.get(name), "__spec__", None)):
                    changed = True
                    break
        if self._wanted is None and hasattr(function, "__code__") and is_by_value(function):
            new = names_in(function) - self._named if id(function.__code__) not in self._seen else set()
            self._seen[id(function.__code__)] = function.__code__
            self._named |= new
            changed = changed or any(self._known.get(name) is not None for name in new if name not in self._sent)
        return changed

    def shipment(self) -> Shipment | None:
        """All that is to be sent; None if there is nothing."""
        self.count = len(sys.modules)
        names = self._wanted
        if names is None:
            names = (*(one.name for one in self._known.loaded()), *_imported_by_main(), *self._named)
        modules = self._known.whole(names)
        self._sent = modules
        return Shipment(modules.values()) if modules else None


def _imported_by_main() -> tuple[str, ...]:
    """The modules that the script may import later, inside of its functions."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    if not isinstance(path, str):
        return ()
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return imports_in(file.read(), "")
    except OSError:
        return ()


class ShippedFunctions(Functions):
    """Functions that are sent together with the user's own modules that they may need."""

    def __init__(
        self, learn: Callable[[int, bytes], None], modules: OwnModules, timeline: Timeline | None = None
    ) -> None:
        super().__init__(learn, timeline)
        self._modules = modules
        self._tag = b""
        self._tags: dict[bytes, bytes] = {b"": b""}  # by digest of the shipment

    def number_of(self, function: Callable[..., Any]) -> int:
        """The number of a function; it is sent again if one of the modules has changed."""
        revisions.look()
        if function.__class__ is FunctionType and self._modules.count == len(sys.modules):
            known = self.settled.get(function)
            if known is not None:
                return known
        if self._modules.have_changed(function):
            tag = self._ship()
            if tag != self._tag:
                self.settled.clear()
                self.by_content.clear()
                self._tag = tag
        return super().number_of(function)

    def _prepared(self, pickled: bytes) -> bytes:
        return pickled  # modules are shipped

    def _ship(self) -> bytes:
        """Send modules that were not sent before. Returns the tag of functions that need them."""
        shipment = self._modules.shipment()
        if shipment is None:
            return b""
        tag = self._tags.get(shipment.digest)
        if tag is None:
            number = self.next_number()
            tag = self._tags[shipment.digest] = shipment.tag(number)
            self._learn(number, shipment.packed)
        return tag

    def _send(self, number: int, pickled: bytes) -> None:
        self._learn(number, self._tag + pickled)
