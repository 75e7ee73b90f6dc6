"""A worker process: reads jobs from stdin, writes progress and documents to stdout, ends with its parent.

`python -m cpq.services.documents.worker FOLDER`, started by `worker_pool.py`.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import sys
import threading
import traceback
from pathlib import Path
from typing import IO

from cpq.base.errors import CpqError
from cpq.base.text import read_json
from cpq.services.documents import worker_messages
from cpq.services.documents.rendering import Renderer, TooLargeError

MEMORY_BYTES_MAX = 2 * 1024**3


NICENESS = 10
"""A document takes seconds of the processor; the server's own short answers go first."""


def main() -> None:
    _limit_memory()
    os.nice(NICENESS)
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # A stray print must not corrupt the messages.
    jobs: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_read_jobs, args=(sys.stdin.buffer, jobs), daemon=True).start()
    renderer = Renderer(Path(sys.argv[1]))
    while True:
        _do(renderer, jobs.get(), output)


def _do(renderer: Renderer, job: bytes, output: IO[bytes]) -> None:
    def report(pages: int, what: str) -> None:
        worker_messages.send(output, worker_messages.PROGRESS, json.dumps([pages, what]).encode())

    try:
        made = renderer.render(read_json(job.decode()), report)
    except TooLargeError as error:
        worker_messages.send(
            output, worker_messages.REFUSED, json.dumps({"reason": "pages", "found": str(error)}).encode()
        )
    except MemoryError:
        worker_messages.send(output, worker_messages.REFUSED, json.dumps({"reason": "memory"}).encode())
    except CpqError as error:
        body = {"reason": "templates", "message": error.message, "hint": error.details.get("hint")}
        worker_messages.send(output, worker_messages.REFUSED, json.dumps(body).encode())
    except BaseException:  # noqa: BLE001 - WeasyPrint raises more than `Exception`; the parent logs it
        worker_messages.send(output, worker_messages.FAILED, traceback.format_exc().encode(errors="replace"))
    else:
        about = json.dumps({"pages": made.pages, "missing": made.missing}).encode()
        worker_messages.send(output, worker_messages.DONE, about + b"\n" + made.pdf)


def _read_jobs(stream: IO[bytes], jobs: queue.Queue[bytes]) -> None:
    """Runs in a thread, so that the end of the parent ends this process even while it renders."""
    while message := worker_messages.receive(stream):
        jobs.put(message[1])
    os._exit(0)


def _limit_memory() -> None:
    if sys.platform == "linux":  # Other systems lack this limit, or ignore it.
        resource = importlib.import_module("resource")
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))


if __name__ == "__main__":
    main()
