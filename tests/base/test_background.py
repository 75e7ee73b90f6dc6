"""Background loops: a server that ends does not wait for each of them."""

import threading
import time

from cpq.base import background
from cpq.base.background import Loop


def test_loops_that_go_on_working_share_one_time_to_end():
    """Five that never end would hold a server for a hundred seconds, and again for the second look."""
    end = threading.Event()
    loops = [Loop(f"endless {number}", lambda: float(end.wait(600))) for number in range(5)]
    for loop in loops:
        loop.start()
    began = time.monotonic()
    background.stop(loops, 0.1)
    background.stop(loops)
    assert time.monotonic() - began < 20, "the time of a single loop was 20 s, and it is 0.1 s for all"
    end.set()
    background.stop(loops)
