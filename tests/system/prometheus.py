"""Tests that are watched by a real Prometheus."""
import json
import shutil
import socket
import subprocess
import unittest
import urllib.parse
import urllib.request

import fathom

OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@unittest.skipUnless(shutil.which("prometheus"), "needs prometheus (a Debian package)")
class TestCase(fathom.TestCase):
    """A Prometheus that finds the runs below runs/ by one glob, five times a second."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        home = cls.directory / "prometheus"
        home.mkdir()
        (home / "prometheus.yml").write_text(f"""
global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}
scrape_configs:
- job_name: fathom
  file_sd_configs:
  - files: ['{cls.directory}/runs/.targets/*.json']
    refresh_interval: 200ms
""", encoding="utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            cls.address = f"127.0.0.1:{free.getsockname()[1]}"
        cls.server = subprocess.Popen(
            ["prometheus", f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/db",
             f"--web.listen-address={cls.address}"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.server.wait)
        cls.addClassCleanup(cls.server.kill)
        fathom.wait_until(cls.is_ready, "a Prometheus that answers")

    @classmethod
    def is_ready(cls):
        try:
            with OPENER.open(f"http://{cls.address}/-/ready", timeout=5):
                return True
        except OSError:
            return False

    def query(self, text):
        """Label sets and values."""
        words = urllib.parse.urlencode({"query": text})
        with OPENER.open(f"http://{self.address}/api/v1/query?{words}",
                         timeout=20) as answer:
            result = json.load(answer)["data"]["result"]
        return [(one["metric"], float(one["value"][1])) for one in result]

    def value(self, text):
        """Of the only series, None without one."""
        result = self.query(text)
        self.assertLessEqual(len(result), 1, f"{text}: {result}")
        return result[0][1] if result else None

    def has_scraped(self, name, step):
        return (self.value(f'max_over_time(fathom_step{{run="{name}"}}[1h])') or 0) >= step
