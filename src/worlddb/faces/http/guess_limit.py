"""Guess limit: how many different wrong tokens may be tried from one address.

A token that has been right from this address is never held up, nor is one that was wrong before:
a client that repeats its old token learns nothing by it. Only new guesses cost.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

MINUTE_S = 60  # Limits are given for a minute.
GUESSES_MAX = 50  # More than anybody mistypes.
GUESS_EVERY_S = 1.0  # Afterwards one more each second: 86,400 a day against 2**128 tokens.
ADDRESSES_MAX = 10_000  # Bounds the memory; who was quiet longest is forgotten.
KEPT_MAX = 1_000  # Tokens kept for each address, right or wrong; some hundred kilobytes.
IPV6_NETWORK_BITS = 64  # What one customer gets: any of its addresses counts as the same.


@dataclass(slots=True)
class _Visitor:
    """What is known of one address."""

    left: float = GUESSES_MAX
    at: float = 0.0
    seen: set[bytes] = field(default_factory=set)


class GuessLimit:
    """Counts wrong tokens by address."""

    def __init__(self) -> None:
        self._visitors: OrderedDict[str, _Visitor] = OrderedDict()

    def wait_s(self, address: str, digest: bytes) -> float:
        """Return how long an address has to wait before this token is looked at; 0: not at all."""
        visitor = self._visitors.get(network_of(address))
        if visitor is None or digest in visitor.seen:
            return 0.0
        self._refill(visitor)
        return 0.0 if visitor.left >= 1 else (1 - visitor.left) * GUESS_EVERY_S

    def note(self, address: str, digest: bytes, *, right: bool) -> bool:
        """Note whether a token was right; return whether this was the last guess for now."""
        network = network_of(address)
        visitor = self._visitors.setdefault(network, _Visitor(at=time.monotonic()))
        self._visitors.move_to_end(network)
        if len(self._visitors) > ADDRESSES_MAX:
            self._visitors.popitem(last=False)
        if digest in visitor.seen:
            return False
        if len(visitor.seen) >= KEPT_MAX:
            visitor.seen.clear()
        visitor.seen.add(digest)
        if right:
            return False
        self._refill(visitor)
        visitor.left -= 1
        return visitor.left < 1

    def _refill(self, visitor: _Visitor) -> None:
        now = time.monotonic()
        visitor.left = min(GUESSES_MAX, visitor.left + (now - visitor.at) / GUESS_EVERY_S)
        visitor.at = now


def network_of(address: str) -> str:
    """Return what an address counts as: itself, or the network of an IPv6 address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, IPV6_NETWORK_BITS), strict=False))


class RateLimit:
    """Counts the requests of tokens: each may save up a minute's worth, and no more."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    async def rate_wait_s(self, digest: bytes, per_minute: int) -> float:
        """Do as `wait_s`, for whom it might have to be asked elsewhere."""
        return self.wait_s(digest, per_minute)

    def wait_s(self, digest: bytes, per_minute: int) -> float:
        """Count a request; return how long its token has to wait first; 0 if not at all."""
        now = self._clock()
        left, at = self._left.get(digest, (float(per_minute), now))
        left = min(per_minute, left + (now - at) * per_minute / MINUTE_S)
        allowed = left >= 1
        self._left[digest] = (left - 1 if allowed else left, now)
        self._left.move_to_end(digest)
        if len(self._left) > ADDRESSES_MAX:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) * MINUTE_S / per_minute
