"""One page in Debian's Chromium, driven through a pipe: no package, no port."""

import base64
import json
import os
import shutil
import subprocess

CHROMIUM = shutil.which("chromium")
PIPE = 'exec "$@" 3<&{} 4>&{}'  # Chromium reads commands from 3, and answers to 4


class Page:
    """A page of a size that stays until the end of ``with``; each call waits for its answer."""

    def __init__(self, profile, width=1280, height=900):
        read, self._to = os.pipe()
        self._from, write = os.pipe()
        words = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        words += ["--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        shell = ["bash", "-c", PIPE.format(read, write), "chromium", *words]
        self._process = subprocess.Popen(
            shell, pass_fds=(read, write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(read)
        os.close(write)
        self._count, self._rest, self._session, self.told = 0, b"", {}, []
        pages = self.call("Target.getTargets")["targetInfos"]
        target = next(page["targetId"] for page in pages if page["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Accessibility"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._session = {}
        self.call("Browser.close")
        self._process.wait(timeout=30)
        os.close(self._to)
        os.close(self._from)

    def call(self, method, **params):
        """Return what Chromium answers to a command; errors of the page are kept in `told`."""
        self._count += 1
        command = {"id": self._count, "method": method, "params": params, **self._session}
        os.write(self._to, json.dumps(command).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("method") == "Runtime.exceptionThrown":
                told = answer["params"]["exceptionDetails"]  # no more of another file's script
                self.told.append(told.get("exception", {}).get("description", told["text"]))
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _message(self):
        while b"\0" not in self._rest:
            more = os.read(self._from, 1 << 20)
            if not more:
                raise RuntimeError("Chromium has ended")
            self._rest += more
        first, self._rest = self._rest.split(b"\0", 1)
        return json.loads(first)

    def open(self, address):
        """Open an address, and wait until its scripts have run."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        wait = "new Promise(done => document.readyState === 'complete' ? done() : onload = done)"
        self.run(wait)

    def run(self, script):
        """Return the value of an expression; a promise is waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def press(self, key):
        """Press a key, such as ArrowRight, where the focus is."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def names(self, *roles):
        """Return role and name of each element of the accessibility tree that has such a role."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        shown = [node for node in nodes if not node["ignored"]]
        pairs = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in shown]
        return [pair for pair in pairs if pair[0] in roles]

    def resize(self, width, height):
        """Give the window a size in CSS pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def prefer(self, **features):
        """Let the reader prefer something: color_scheme="dark", reduced_motion="reduce"."""
        named = [
            {"name": f"prefers-{name.replace('_', '-')}", "value": value}
            for name, value in features.items()
        ]
        self.call("Emulation.setEmulatedMedia", features=named)

    def picture(self, path, is_whole=False):
        """Write a picture of the window, or of the whole page."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=is_whole)
        path.write_bytes(base64.b64decode(shot["data"]))
