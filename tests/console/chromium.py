"""Finds the system's Chromium; as a program it says where that is, or fails with what to run."""

import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
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


if __name__ == "__main__":
    print(find())
