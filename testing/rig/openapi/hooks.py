"""Hooks of Schemathesis for the API of suimond.

SUIMON_URL, SUIMON_TOKEN and SUIMON_CA name the daemon under test.
"""

import os

import requests
import schemathesis

URL = os.environ["SUIMON_URL"]
SESSION = requests.Session()
SESSION.headers["Authorization"] = f"Bearer {os.environ['SUIMON_TOKEN']}"
SESSION.verify = os.environ["SUIMON_CA"]
SESSION.trust_env = False
WAIT_S = 300


@schemathesis.hook
def after_call(context, case, response):
    """Waits until the operation that a request began has ended."""
    for location in response.headers.get("location", []):
        if response.status_code == 202 and location.startswith("/1.0/operations/"):
            wait = f"{URL}{location}/wait?timeout_s={WAIT_S}"
            SESSION.get(wait, timeout=WAIT_S + 60)
