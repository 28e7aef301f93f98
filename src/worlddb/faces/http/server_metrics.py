"""Metrics of the server in Prometheus text format, and its log of requests."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from worlddb import __version__
from worlddb.faces.http.http_problems import HttpError, problem_of

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
METHODS = frozenset(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"))
"""Methods that get a line of their own; a client must not be able to add lines."""
HELP = {
    "worlddb_info": ("gauge", "The version that runs."),
    "worlddb_start_time_seconds": ("gauge", "When the server was started, since 1970."),
    "worlddb_http_requests_total": ("counter", "Requests answered, by route, method and status."),
    "worlddb_http_request_seconds": ("histogram", "Time to answer, by route and method."),
    "worlddb_http_requests_in_progress": ("gauge", "Requests being answered."),
    "worlddb_memories_written_total": ("counter", "Memories this server has created."),
    "worlddb_memories_retired_total": ("counter", "Memories this server has ended."),
    "worlddb_store_commits": ("gauge", "Commits in the store, by any writer."),
    "worlddb_store_bytes": ("gauge", "Size of the store's files."),
    "worlddb_stores_open": ("gauge", "Stores of tenants that are open."),
}


class _Histogram:
    """Observed times in buckets, which are summed up only when they are shown."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.total_s = 0.0

    def observe(self, seconds: float) -> None:
        self.total_s += seconds
        for place, bound in enumerate(BUCKETS_S):
            if seconds <= bound:
                self.counts[place] += 1
                return
        self.counts[-1] += 1


@dataclass(frozen=True, slots=True)
class MetricsState:
    """The counts of one process, as plain data."""

    started: float
    counters: Mapping[str, int]
    requests: Mapping[tuple[str, str, int], int]
    times: Mapping[tuple[str, str], tuple[list[int], float]]
    in_progress: int

    def at_rest(self) -> MetricsState:
        """Return the counts of a process that has ended."""
        return replace(self, in_progress=0)


class ServerMetrics:
    """Counters of one server, safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started = time.time()
        self._counters = Counter(worlddb_memories_written_total=0, worlddb_memories_retired_total=0)
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._times: dict[tuple[str, str], _Histogram] = {}
        self._in_progress = 0

    def add(self, name: str, count: int = 1) -> None:
        """Add to a counter."""
        with self._lock:
            self._counters[name] += count

    def began(self) -> None:
        """Count an arrived request."""
        with self._lock:
            self._in_progress += 1

    def ended(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        method = method if method in METHODS else "other"
        with self._lock:
            self._in_progress -= 1
            key = (route, method, status)
            self._requests[key] += 1
            self._times.setdefault((route, method), _Histogram()).observe(seconds)

    def state(self) -> MetricsState:
        """Return the counts so far."""
        with self._lock:
            times = {key: (list(one.counts), one.total_s) for key, one in self._times.items()}
            counters, requests = dict(self._counters), dict(self._requests)
            return MetricsState(self._started, counters, requests, times, self._in_progress)

    @classmethod
    def of(cls, states: Iterable[MetricsState]) -> ServerMetrics:
        """Return the combined counts of several processes."""
        made = cls()
        for state in states:
            made._started = min(made._started, state.started)
            made._in_progress += state.in_progress
            made._counters.update(state.counters)
            made._requests.update(state.requests)
            for key, (counts, total_s) in state.times.items():
                sums = made._times.setdefault(key, _Histogram())
                sums.counts = [old + new for old, new in zip(sums.counts, counts, strict=True)]
                sums.total_s += total_s
        return made

    def text(self, of_stores: Mapping[str, float]) -> str:
        """Return all metrics, with those of the stores."""
        gauges = {"worlddb_start_time_seconds": self._started, **of_stores}
        with self._lock:
            gauges["worlddb_http_requests_in_progress"] = self._in_progress
            lines = [*_head("worlddb_info"), f'worlddb_info{{version="{__version__}"}} 1']
            for name, value in sorted((self._counters | gauges).items()):
                lines += [*_head(name), f"{name} {_number(value)}"]
            lines += _head("worlddb_http_requests_total")
            for (route, method, status), count in sorted(self._requests.items()):
                labels = f'route="{route}",method="{method}",status="{status}"'
                lines.append(f"worlddb_http_requests_total{{{labels}}} {count}")
            lines += _head("worlddb_http_request_seconds")
            for (route, method), times in sorted(self._times.items()):
                lines += _histogram(f'route="{route}",method="{method}"', times)
        return "\n".join(lines) + "\n"


def _head(name: str) -> list[str]:
    kind, told = HELP[name]
    return [f"# HELP {name} {told}", f"# TYPE {name} {kind}"]


def _histogram(labels: str, times: _Histogram) -> Iterator[str]:
    name, seen = "worlddb_http_request_seconds", 0
    for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), times.counts, strict=True):
        seen += count
        yield f'{name}_bucket{{{labels},le="{bound}"}} {seen}'
    yield f"{name}_sum{{{labels}}} {times.total_s:.6f}"
    yield f"{name}_count{{{labels}}} {seen}"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}"


ACCESS_LOG = logging.getLogger("worlddb.access")
NO_ROUTE = "(none)"
CLIENT_GONE = 499
"""The client closed the connection before the answer; the number is the one that nginx uses."""
SAFE_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]


def address_of(scope: Scope) -> str:
    """Return the address of a request's client."""
    return scope["client"][0] if scope.get("client") else ""


class RequestLog:
    """Counts and logs requests by route: unlike a path, a route has no ids and texts.

    Neither tokens nor texts are logged.
    """

    def __init__(self, app: ASGIApp, *, metrics: ServerMetrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = CLIENT_GONE

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                held = {name for name, _ in message.get("headers", [])}
                more = [header for header in SAFE_HEADERS if header[0] not in held]
                message = {**message, "headers": [*message.get("headers", []), *more]}
            await send(message)

        self.metrics.began()
        started = time.perf_counter()
        try:
            await self.app(scope, receive, watched)
        except asyncio.CancelledError:
            if status == CLIENT_GONE:
                stopped = HttpError(503, "the server stops; try again", {"Connection": "close"})
                await problem_of(stopped)(scope, receive, watched)
        except Exception:
            status = 500  # The answer of the outermost handler.
            raise
        finally:
            taken_s = time.perf_counter() - started
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            self.metrics.ended(route, scope["method"], status, taken_s)
            if ACCESS_LOG.isEnabledFor(logging.INFO):
                method = scope["method"] if scope["method"] in METHODS else "other"
                token = scope.get("worlddb.token", "") or "-"
                address = address_of(scope) or "-"
                line = "%s %s %d %.1f ms %s %s"
                ACCESS_LOG.info(line, method, route, status, taken_s * 1000, address, token)
