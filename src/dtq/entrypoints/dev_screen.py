"""What `dtq dev` says at the terminal."""

import shlex
import sys
from pathlib import Path

from dtq.domain.text import clean
from dtq.entrypoints.broker_url import redacted
from dtq.entrypoints.embedded import LOOPBACK


def banner(url: str, *, port: int, path: Path, modules: str) -> str:
    """Return what is shown when everything runs: where it is, and what to type."""
    payload = shlex.quote('{"hello": "world"}')
    return f"""
dtq dev is ready. Ctrl-C finishes what runs and stops everything.

  API      http://{LOOPBACK}:{port}   (what it offers: http://{LOOPBACK}:{port}/docs)
  broker   {redacted(url)}
  data     {path}
  tasks    {modules}

In another terminal, in this folder:

  dtq submit --type echo_task --payload {payload} --wait
"""


def say(text: str) -> None:
    """Print *text*, and go on where nobody reads it any more."""
    try:
        for line in text.split("\n"):
            sys.stdout.write(clean(line, limit=2000) + "\n")
        sys.stdout.flush()
    except OSError:
        return
