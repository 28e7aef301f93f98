"""What holds for all tests: an interrupt interrupts."""

from __future__ import annotations

import signal

# A shell that starts us in the background has us ignore it, and what we start inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
