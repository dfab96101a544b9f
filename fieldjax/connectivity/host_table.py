"""`HostTable`: the concrete NumPy twin of a neighbour table, which answers questions about it."""

from __future__ import annotations

import hashlib
import weakref
from typing import Any

import numpy as np

from fieldjax.connectivity.answers import Answers
from fieldjax.connectivity.handle import Handle, digest_of, handle_of
from fieldjax.connectivity.interning import Interning
from fieldjax.connectivity.questions.bounds import Bounds, bounds_of
from fieldjax.connectivity.questions.boxes import (
    box_of,
    domain_of,
    growth_order,
    local_axes,
    part_of,
    slices,
    whole,
)
from fieldjax.connectivity.questions.explain import broken_narrowing
from fieldjax.connectivity.questions.narrowing import narrow
from fieldjax.connectivity.questions.protocol import TableFacts
from fieldjax.connectivity.transpose import Degrees, Transposed, degrees_of, is_transposable, pays, transposed
from fieldjax.domain import EMPTY, Dimension, Domain, UnitRange


class HostTable:
    """The contents of a table, read-only, with everything that was ever found out about them.

    Laws: there is one live twin per contents (dtype, shape, bytes, skip value); `entries` never changes; an
    answer depends on the contents and the question only. It doesn't know its domain: the same contents may be
    laid out on several, so questions carry it.
    """

    __slots__ = ("__weakref__", "_answers", "_essence", "_uploaded", "entries", "handle", "skip_value")

    entries: np.ndarray
    skip_value: int | None
    handle: Handle

    def __init__(self, entries: np.ndarray, skip_value: int | None, handle: Handle) -> None:
        entries.flags.writeable = False
        # A view can't be made writeable again while what it views isn't.
        self.entries, self.skip_value, self.handle = entries.view(), skip_value, handle
        self._answers = Answers()
        self._essence = Answers()  # apart, so that no number of questions evicts it
        self._uploaded: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        handle.answered_by(self)

    def holds(self, entries: np.ndarray, skip_value: int | None) -> bool:
        """Whether its contents are these."""
        same_kind = self.skip_value == skip_value and self.entries.dtype == entries.dtype
        return same_kind and np.array_equal(self.entries, entries)

    def recognises(self, array: Any) -> bool:
        """Whether `array` is an immutable array that was found to hold the contents before."""
        return self._uploaded.get(id(array)) is array

    def remember(self, array: Any) -> None:
        """From now on, recognise this immutable array."""
        self._uploaded[id(array)] = array

    def uploaded(self) -> Any | None:
        """A live JAX array that holds the contents, if there is one."""
        arrays = list(self._uploaded.values())
        return next((a for a in arrays if a.shape == self.entries.shape and not a.is_deleted()), None)

    @property
    def bounds(self) -> Bounds:
        """Of all valid entries."""
        return self._essence.get("bounds", bounds_of, self.entries, self.skip_value)

    def inverse_image(
        self, domain: Domain, codomain: Dimension, image_range: UnitRange, within: Domain | None = None
    ) -> Domain:
        """Where the table, laid out on `domain`, leads into `image_range` only (see `questions.narrowing`).

        With `within`, what is asked about is that part of the table alone.

        Raises:
            NarrowingError: that is nowhere, or not a hyperrectangle.
        """
        part = domain if within is None else part_of(within, domain)
        found = self._answers.get(("inverse", domain, part, image_range), self._narrow, domain, part, image_range)
        if found is not None:
            return found
        entries, bounds = self._part(domain, part)
        valid = UnitRange(bounds.minimum, bounds.maximum + 1)
        raise broken_narrowing(entries, self.skip_value, part, codomain, image_range, valid)

    def _narrow(self, domain: Domain, part: Domain, asked: UnitRange) -> Domain | None:
        order = growth_order(domain)
        entries, bounds = self._part(domain, part)
        box = narrow(entries, self.skip_value, bounds, asked.start, asked.stop, order)
        return None if box is None else domain_of(box, part)

    def _part(self, domain: Domain, part: Domain) -> tuple[np.ndarray, Bounds]:
        """The entries on a part of the domain, and their bounds."""
        if part == domain:
            return self.entries, self.bounds
        entries = self.entries[slices(box_of(part, domain))]
        return entries, self._answers.get(("bounds", domain, part), bounds_of, entries, self.skip_value)

    def image(self, domain: Domain, sub: Domain) -> UnitRange:
        """The smallest range with every valid entry on `sub`; empty if there is none."""
        return self._answers.get(("image", domain, sub), self._image, domain, sub)

    def _image(self, domain: Domain, sub: Domain) -> UnitRange:
        box = box_of(sub, domain)
        everything = box == whole(self.entries.shape)
        bounds = self.bounds if everything else bounds_of(self.entries[slices(box)], self.skip_value)
        return UnitRange(bounds.minimum, bounds.maximum + 1) if bounds.valid else EMPTY

    def facts(self, domain: Domain, sub: Domain) -> TableFacts:
        """Skips and neighbours on `sub`."""
        return self._answers.get(("facts", domain, sub), self._facts, domain, sub)

    def _facts(self, domain: Domain, sub: Domain) -> TableFacts:
        part = self.entries[slices(box_of(sub, domain))]
        if self.bounds.skips == 0 or part.size == 0:
            return TableFacts(False, False, part.size > 0)
        skips = part == self.skip_value
        # One entry is a row where the table has no LOCAL dimension.
        rows = skips.all(axis=local_axes(domain))
        return TableFacts(bool(skips.any()), bool(rows.any()), not skips.all())

    @property
    def degrees(self) -> Degrees:
        """The size of the transpose."""
        return self._essence.get("degrees", degrees_of, self.entries, self.skip_value)

    def adjoint_pays(self, domain: Domain) -> bool:
        """Whether, laid out on `domain`, it has a transpose that is small enough to be worth it."""
        return is_transposable(domain) and pays(self.degrees, self.entries.size)

    def transposed(self, slot_axis: int) -> Transposed:
        """The transpose, on the host. Cached."""
        arguments = (self.entries, self.skip_value, self.degrees, slot_axis)
        return self._essence.get(("transposed", slot_axis), transposed, *arguments)

    def __repr__(self) -> str:
        return f"HostTable({self.entries.dtype}{list(self.entries.shape)}, skip_value={self.skip_value})"


_twins: Interning[bytes, HostTable] = Interning()


def host_table(entries: np.ndarray, skip_value: int | None) -> HostTable:
    """The twin with these contents. Takes ownership of `entries`, which must be C-contiguous."""
    digest = digest_of(entries, skip_value)
    while True:
        handle = handle_of(digest)
        twin = _twins.get_or_make(digest, lambda: HostTable(entries, skip_value, handle))  # noqa: B023
        if twin.entries.base is entries or twin.holds(entries, skip_value):
            return twin
        # Two contents with one digest: the later one goes by another name.
        digest = hashlib.sha1(digest, usedforsecurity=False).digest()
