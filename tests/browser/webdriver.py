"""Chromium through its WebDriver, with nothing but Python's own library (https://www.w3.org/TR/webdriver2/)."""

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request


class Browser:
    """A headless Chromium. Use as: with Browser() as browser: browser.open(path)."""

    def __enter__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(
            [shutil.which("chromedriver") or "/usr/bin/chromedriver", f"--port={port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._wait_until_ready()
        arguments = ["--headless", "--disable-gpu", "--hide-scrollbars", "--window-size=1320,1500"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        options = {"args": arguments, "binary": shutil.which("chromium") or "/usr/bin/chromium"}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"}}
        session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = "/session/" + session["sessionId"]
        return self

    def __exit__(self, *_):
        try:
            self._call("DELETE", self.session)
        except (OSError, AttributeError):
            pass
        self.driver.terminate()
        self.driver.wait()

    def _wait_until_ready(self):
        for _ in range(300):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("chromedriver does not answer")

    def _call(self, method, path, body=None):
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"].splitlines()[0]) from None

    def open(self, path):
        """Opens a file, with what was logged before forgotten."""
        self.log("performance"), self.log("browser")
        self._call("POST", self.session + "/url", {"url": "file://" + os.path.abspath(path)})

    def run(self, script, *arguments):
        """What the body of a function returns in the page."""
        return self._call("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def log(self, kind):
        return self._call("POST", self.session + "/se/log", {"type": kind})

    def requests(self):
        """Addresses of all that the page asked for since it was opened."""
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def errors(self):
        return [entry["message"] for entry in self.log("browser") if entry["level"] == "SEVERE"]

    def pointer(self, *steps):
        """Steps of the mouse: (x, y) moves there, "down" and "up" press and release."""
        actions = []
        for step in steps:
            if step == "down" or step == "up":
                actions.append({"type": "pointer" + step.capitalize(), "button": 0})
            else:
                actions.append({"type": "pointerMove", "duration": 0, "x": round(step[0]), "y": round(step[1])})
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}
        self._call("POST", self.session + "/actions", {"actions": [mouse]})

    def colours(self, scheme):
        """Asks for pages in "light" or "dark"."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        command = {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}}
        self._call("POST", self.session + "/goog/cdp/execute", command)

    def width(self, pixels):
        """Makes the window so wide."""
        self._call("POST", self.session + "/window/rect", {"width": pixels, "height": 1500})

    def screenshot(self, path):
        import base64

        with open(path, "wb") as file:
            file.write(base64.b64decode(self._call("GET", self.session + "/screenshot")))
