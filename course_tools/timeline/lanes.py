"""Spans of time, and the lanes that they make up: one for each thread or stream."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple


class Span(NamedTuple):  # a trace has hundreds of thousands, and a tuple is made quickly
    """Something that went on from `start_s` to `end_s`, in seconds from its timeline's start."""

    name: str
    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        """How long it went on."""
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Lane:
    """The work and the waits of one thread or stream.

    Attributes:
        name: of the thread or stream.
        kind: "host", "launches", "copies", "exchange" (between GPUs) or "device"; "noted" is what
            a program has noted of itself, without a profiler.
        work: operations, kernels or copies; where they are nested, the outermost ones.
        named: the outermost blocks that the program has given a name with `record_function`.
        waits: when it did nothing but wait for a device.
    """

    name: str
    kind: str
    work: tuple[Span, ...]
    named: tuple[Span, ...] = ()
    waits: tuple[Span, ...] = ()

    @property
    def busy_s(self) -> float:
        """The seconds in which work went on, of two things at once counted once."""
        return covered_s(self.work)

    def between(self, start_s: float, end_s: float) -> "Lane":
        """Return what lies between two moments; the first of them is its new beginning."""

        def cut(spans: Iterable[Span]) -> tuple[Span, ...]:
            inside = [span for span in spans if span.end_s > start_s and span.start_s < end_s]
            return tuple(
                Span(
                    span.name,
                    max(span.start_s, start_s) - start_s,
                    min(span.end_s, end_s) - start_s,
                )
                for span in inside
            )

        return replace(self, work=cut(self.work), named=cut(self.named), waits=cut(self.waits))

    @property
    def end_s(self) -> float:
        """When the last work, block or waiting ended."""
        return max((span.end_s for span in self.work + self.named + self.waits), default=0.0)


def union(spans: Iterable[Span], pause_s: float = 0.0) -> list[Span]:
    """Return the times in which at least one span goes on, in order and without overlaps; what is
    no more than `pause_s` apart is one.
    """
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start_s):
        if merged and span.start_s <= merged[-1].end_s + pause_s:
            last = merged.pop()
            span = Span(last.name, last.start_s, max(last.end_s, span.end_s))
        merged.append(span)
    return merged


def covered_s(spans: Iterable[Span]) -> float:
    """Return the seconds in which at least one span goes on."""
    return sum(span.seconds for span in union(spans))


def outermost(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the spans that lie in no other one, in order."""
    outer: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start_s, -span.end_s)):
        if not outer or span.end_s > outer[-1].end_s:
            outer.append(span)
    return tuple(outer)


def without(spans: Iterable[Span], holes: Iterable[Span]) -> tuple[Span, ...]:
    """Return what is left of the spans where no hole is, in order."""
    left: list[Span] = []
    apart = union(holes)
    first = 0  # the first hole that does not end before the span at hand begins
    for span in sorted(spans, key=lambda span: span.start_s):
        while first < len(apart) and apart[first].end_s <= span.start_s:
            first += 1
        start_s, at = span.start_s, first
        while at < len(apart) and apart[at].start_s < span.end_s:
            if apart[at].start_s > start_s:
                left.append(Span(span.name, start_s, apart[at].start_s))
            start_s = apart[at].end_s
            at += 1
        if start_s < span.end_s:
            left.append(Span(span.name, start_s, span.end_s))
    return tuple(sorted(left, key=lambda span: span.start_s))
