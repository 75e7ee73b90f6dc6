"""Finds the system's Chromium. As a program it says where that is, or fails with what to run; `start` tries it."""

import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find() -> str:
    """RuntimeError with what to run when there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise RuntimeError("The console's tests need Chromium. Run `.ci/setup browser`, which installs it or says how.")
    return found


def start() -> None:
    """RuntimeError with what it said when it does not start: a library or a font can be missing."""
    command = [find(), *FLAGS, "--dump-dom", "data:text/html,<p>ready"]
    tried = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    if "<p>ready</p>" not in tried.stdout:
        raise RuntimeError(f"Chromium does not start: {tried.stderr.strip()[-2_000:]}")


if __name__ == "__main__":
    print(find())
    if "start" in sys.argv[1:]:
        start()
