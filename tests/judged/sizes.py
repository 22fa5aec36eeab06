"""How big the judged tests are: DTQ_TEST_JUDGED=full is the size at which dtq is judged, otherwise a tenth of it.

The defaults of dtq (visibility 30 s, heartbeat 5 s) hold in the full size, so that it takes half an hour.
"""

import os

FULL = os.environ.get("DTQ_TEST_JUDGED") == "full"

VISIBILITY_S = 30.0 if FULL else 2.0
HEARTBEAT_S = 5.0 if FULL else 0.5

REPEATS = 20 if FULL else 3
"""How often in a row a worker is killed."""

KILLED_VISIBILITY_S = 30.0 if FULL else 3.0
LIMIT_FACTOR = 1.3
"""Within how many of these visibility timeouts its work must run again. The shorter, the less may the machine lag."""

OUTAGE_S = 60.0 if FULL else 10.0

CHAOS_TASKS = 5000 if FULL else 1000
CHAOS_S = 30.0 if FULL else 10.0
CHAOS_KILL_EVERY_S = 1.0 if FULL else 2.0

QUICK = {"DTQ_VISIBILITY_TIMEOUT_S": "2", "DTQ_HEARTBEAT_INTERVAL_S": "0.5"}
"""Settings of tests whose promise does not depend on the visibility timeout, whatever the size."""
