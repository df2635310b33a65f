"""The structure of a PDF: what is a heading, a paragraph, a table with its cells, a figure and what it shows. Screen
readers and search engines read it; fpdf2 itself tags pictures only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fpdf.structure_tree import StructElem, StructureTreeBuilder
from fpdf.syntax import PDFArray, PDFObject


class Element(StructElem):
    """One element of the structure; `a` are its attributes, as a PDF dictionary."""

    __slots__ = ("a",)

    def __init__(self, kind: str, parent: PDFObject, page: int, alt: str | None = None, attributes: str = "") -> None:
        super().__init__(f"/{kind}", parent, [], page_number=page, alt=alt)
        self.a = attributes or None


class _Roots(PDFArray):
    """The children of the document. fpdf2 goes through them to tell each its page, and writes them as its children: the
    first means all elements, the second the outermost."""

    def __init__(self) -> None:
        super().__init__()
        self.every: list[Element] = []

    def __iter__(self) -> Iterator[Any]:
        return iter(self.every)

    def serialize(self, *_args: Any, **_more: Any) -> str:
        return f"[{' '.join(one.ref for one in list.__iter__(self))}]"


class StructureTree(StructureTreeBuilder):
    """Elements in elements, and content of pages in them."""

    def __init__(self) -> None:
        super().__init__()
        self._roots = self.doc_struct_elem.k = _Roots()
        self._next_on: dict[int, int] = {}  # page → the number of its next piece of content

    def add(
        self, kind: str, page: int, within: Element | None, alt: str | None = None, attributes: str = ""
    ) -> Element:
        """An element behind all that are there: of the document, or within another one."""
        one = Element(kind, within or self.doc_struct_elem, page, alt, attributes)
        (self._roots if within is None else within.k).append(one)
        self._roots.every.append(one)
        return one

    def content(self, element: Element, page: int) -> tuple[int, int]:
        """(number of a new piece of content on its page, number of the page in the tree)."""
        place = self.spid_per_page_number.setdefault(page, len(self.spid_per_page_number))
        number = self._next_on.get(page, 0)
        self._next_on[page] = number + 1
        element.k.append(number)
        self.struct_tree_root.parent_tree.nums[place].append(element)
        return number, place

    def __iter__(self) -> Iterator[PDFObject]:
        yield self.struct_tree_root
        yield self.doc_struct_elem
        yield self.struct_tree_root.parent_tree
        yield from self._roots.every
