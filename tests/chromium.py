"""A headless Chromium that tests talk to over a pipe, in the DevTools protocol."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

import pytest

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
needed = pytest.mark.skipif(PROGRAM is None, reason="neither chromium nor google-chrome is installed")


class Chromium:
    """One browser; `open` gives a page."""

    def __init__(self, folder):
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        options = [
            "--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-dev-shm-usage",
            "--remote-debugging-pipe", f"--user-data-dir={folder}",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
        ]  # fmt: skip
        # the browser reads commands from number 3 and answers on number 4
        script = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}'
        self._running = subprocess.Popen(
            ["bash", "-c", script, PROGRAM, *options],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._last, self._buffer, self.events = 0, b"", []

    def send(self, method, session=None, **parameters):
        """Call a method of the protocol and wait for its answer."""
        self._last += 1
        call = {"id": self._last, "method": method, "params": parameters}
        os.write(self._write, json.dumps(call | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == self._last:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def _next(self, patience_s=60):
        end = time.monotonic() + patience_s
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            more = os.read(self._read, 1 << 16)
            assert more, "the browser has ended"
            self._buffer += more
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def wait_for(self, method, session):
        """Wait until an event has come."""
        while not any(one.get("method") == method and one.get("sessionId") == session for one in self.events):
            self.events.append(self._next())

    def open(self, file, *, width=1100, height=900, scheme="light", media=""):
        return Page(self, file, width=width, height=height, scheme=scheme, media=media)

    def close(self):
        try:
            self.send("Browser.close")
            self._running.wait(20)
        finally:
            self._running.kill()
            self._running.wait()
            os.close(self._write)
            os.close(self._read)


class Page:
    """A page as it is after it has loaded."""

    def __init__(self, browser, file, *, width, height, scheme, media):
        self._browser = browser
        target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{part}.enable")
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.send(
            "Emulation.setEmulatedMedia",
            media=media,
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        browser.events.clear()
        self.url = file.resolve().as_uri()
        self.send("Page.navigate", url=self.url)
        browser.wait_for("Page.loadEventFired", self._session)

    def send(self, method, **parameters):
        return self._browser.send(method, self._session, **parameters)

    def run(self, expression):
        """The value of a JavaScript expression."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def events(self, method):
        own = (one for one in self._browser.events if one.get("sessionId") == self._session)
        return [one["params"] for one in own if one["method"] == method]

    def complaints(self):
        """Errors and warnings of scripts and of the browser."""
        self.run("new Promise(requestAnimationFrame)")
        logged = [one["entry"]["text"] for one in self.events("Log.entryAdded")]
        thrown = [str(one["exceptionDetails"]) for one in self.events("Runtime.exceptionThrown")]
        return logged + thrown + [str(one) for one in self.events("Runtime.consoleAPICalled")]

    def requests(self):
        """What was asked for beside the page itself and what it holds."""
        urls = [one["request"]["url"] for one in self.events("Network.requestWillBeSent")]
        return [url for url in urls if url != self.url and not url.startswith("data:")]

    def drag(self, x, y, to_x):
        """Drag the mouse across."""
        for kind, at in (
            ("mousePressed", x),
            ("mouseMoved", (x + to_x) / 2),
            ("mouseMoved", to_x),
            ("mouseReleased", to_x),
        ):
            self.send(
                "Input.dispatchMouseEvent", type=kind, x=at, y=y, button="left", buttons=1, clickCount=1
            )  # fmt: skip

    def pdf(self):
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])

    def close(self):
        self.send("Page.close")
