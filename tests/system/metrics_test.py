"""What Prometheus scrapes from a living run, against the run's own record."""
import json
import math
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import unittest
import urllib.request

import fathom
import prometheus

SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
NOT_IN_LAYERS = {"fathom_layer_nonfinite_total"}  # but in events.jsonl


class Scrape:
    def __init__(self, text):
        self.text = text
        self.samples = {}
        for line in text.splitlines():
            match = SAMPLE.match(line)
            if match and not line.startswith("#"):
                labels = frozenset(LABEL.findall(match[2] or ""))
                self.samples[match[1], labels] = float(match[3])

    def value(self, name, **labels):
        return self.samples["fathom_" + name, frozenset(labels.items())]

    def names(self):
        return {name for name, _ in self.samples}


class Metrics(fathom.TestCase):
    FOREVER = "train.max_steps=1000000"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.config = cls.write_config("served", monitoring={
            "listen": "127.0.0.1:0", "layer_statistics_every": 50}, train={"validate_every": 100})

    def catalogue(self):
        return json.loads(self.fathom("metrics", "--format", "json").stdout)

    def scrape(self, run):
        [target] = json.loads((run.path / "targets.json").read_text(encoding="utf-8"))
        [address] = target["targets"]
        self.assertEqual(target["labels"]["run"], "served")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{address}/metrics", timeout=10) as reply:
            return Scrape(reply.read().decode())

    def stop(self, process):
        process.send_signal(signal.SIGUSR1)
        result = fathom.finish(process)
        self.assertEqual(result.code, 75, str(result))

    def assert_layers_match(self, scrape, run):
        """The series are the values of the last layers.jsonl line at the scraped step."""
        step = scrape.value("step")
        line = [line for line in run.layers() if line["step"] <= step][-1]
        self.assertGreater(len(line["blocks"]), 0)
        for block in line["blocks"]:
            labels = {k: str(block[k]) for k in ("stack", "layer", "block")}
            names = block.keys() - labels.keys()
            self.assertEqual({f"fathom_layer_{name}" for name in names} | NOT_IN_LAYERS,
                             {m["name"] for m in self.catalogue() if len(m["labels"]) == 3})
            for name in names:
                self.assertTrue(math.isclose(scrape.value(f"layer_{name}", **labels), block[name],
                                             rel_tol=1e-9), f"{name} {labels} at step {step}")
            self.assertEqual(scrape.value("layer_nonfinite_total", **labels), 0)
        series = [labels for name, labels in scrape.samples if name == "fathom_layer_omega"]
        self.assertEqual(len(series), len(line["blocks"]))
        return line["step"]

    def assert_step_matches(self, scrape, run):
        step, before = int(scrape.value("step")), int(scrape.value("previous_steps"))
        self.assertEqual(scrape.value("steps_total"), step - before)
        line = run.metrics()[step - 1]
        self.assertEqual(line["step"], step)
        for name in ("loss", "gradient_norm", "learning_rate"):
            self.assertTrue(math.isclose(scrape.value(name), line[name], rel_tol=1e-9), name)
        tokens = sum(line["tokens"] for line in run.metrics()[before:step])
        self.assertEqual(scrape.value("tokens_total", side="target"), tokens)

    def test_scrapes_of_a_living_run_are_its_record(self):
        run = self.run_directory("run")
        process = self.start_training(run, self.FOREVER, ranks=2)
        scraped_steps, layer_steps, last = [], set(), None
        for at in (1, 60, 120, 250):
            self.wait_for_step(run, at, process)
            last = self.scrape(run)
            layer_steps.add(self.assert_layers_match(last, run))
            self.assert_step_matches(last, run)
            scraped_steps.append(last.value("steps_total"))
        self.assertEqual(scraped_steps, sorted(set(scraped_steps)))
        self.assertGreater(len(layer_steps), 1)
        self.assertTrue(any(math.isclose(last.value("validation_loss"), v["validation_loss"],
                                         rel_tol=1e-9) for v in run.validations().values()))
        for name in ("state", "epoch", "run_info", "build_info", "last_step_timestamp_seconds",
                     "step_duration_seconds_count", "phase_seconds_total", "arena_bytes"):
            self.assertIn("fathom_" + name, last.names())
        self.assertTrue(0 < last.value("model_flops_utilization_ratio") < 1)
        lags = [last.value("rank_step_lag_seconds", rank=str(i)) for i in range(2)]
        paces = [last.value("rank_relative_performance_ratio", rank=str(i)) for i in range(2)]
        self.assertEqual((min(lags), max(paces)), (0, 1))
        self.assertTrue(max(lags) < 10 and min(paces) > 0, (lags, paces))
        self.stop(process)
        self.assertFalse((run.path / "targets.json").exists())

        # The same steps on other numbers of ranks have the same statistics.
        step = run.result()["step"]
        for ranks in (0, 3):
            other = self.run_directory(f"on{ranks}")
            self.train(other, f"train.max_steps={step}", ranks=ranks)
            self.assertEqual(other.layers(), run.layers())

    @unittest.skipUnless(shutil.which("promtool"), "needs promtool (Debian package prometheus)")
    def test_promtool_has_nothing_to_say(self):
        run = self.run_directory("run")
        process = self.start_training(run, self.FOREVER, ranks=2)
        self.wait_for_step(run, 110, process)  # has validated
        text = self.scrape(run).text
        check = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                               capture_output=True, check=False)
        self.assertEqual((check.returncode, check.stdout, check.stderr), (0, "", ""), text)
        self.stop(process)

    def test_a_run_serves_every_metric_of_the_catalogue(self):
        run = self.run_directory("run")
        process = self.start_training(run, self.FOREVER, "train.best_metric=bleu",
                                      "train.validate_every=20", "checkpoint.every_steps=20")
        self.wait_for_step(run, 60, process)
        scrape = self.scrape(run)
        for metric in self.catalogue():
            name = metric["name"]
            if metric["type"] == "histogram":
                name += "_count"
            labels = [{label for label, _ in labels} for sample, labels in scrape.samples
                      if sample == name]
            self.assertTrue(labels, f"{name} is not served")
            self.assertEqual(labels[0], set(metric["labels"]), name)
            self.assertIn(f"# HELP {metric['name']} {metric['help']}\n"
                          f"# TYPE {metric['name']} {metric['type']}\n", scrape.text)
        self.stop(process)

    def test_skipped_steps_name_the_blocks_that_are_not_finite(self):
        run = self.run_directory("run")
        # Every update multiplies the weights by 1 - 100 * 1000; the tenth skip in a row ends it.
        result = self.train(run, "optimizer.learning_rate=100", "optimizer.weight_decay=1000",
                            "optimizer.warmup_steps=1", "train.validate_every=0", ranks=2, code=5)
        self.assertIn("failed at step", result.stderr)
        skipped = run.events("skipped")
        self.assertEqual(len(skipped), 10)
        for event in skipped:
            self.assertEqual(event["last_block"], "decoder.2.feed_forward")
            self.assertGreater(event["nonfinite_blocks"], 0)

    def test_a_slow_rank_is_seen(self):
        run = self.run_directory("run")
        process = self.start_training(run, self.FOREVER, "model.width=256", "model.ffn_width=1024",
                                      ranks=2)
        self.wait_for_step(run, 3, process)
        slow = fathom.children(process.pid)[1]
        pace, done = 1, threading.Event()

        def slow_down():  # a step takes several turns, so that every one has pauses
            while not done.wait(0.003):
                os.kill(slow, signal.SIGSTOP)
                time.sleep(0.1)
                os.kill(slow, signal.SIGCONT)

        slower = threading.Thread(target=slow_down)
        slower.start()
        try:
            deadline = time.monotonic() + 40
            while time.monotonic() < deadline:
                scrape = self.scrape(run)
                pace = scrape.value("rank_relative_performance_ratio", rank="1")
                if pace < 0.5 and scrape.value("rank_step_lag_seconds", rank="1") > 0.1:
                    break
                time.sleep(0.02)
        finally:
            done.set()
            slower.join()
        self.assertLess(pace, 0.5)
        self.stop(process)

    def test_counters_begin_at_zero_and_gauges_tell_where_the_run_is(self):
        run = self.run_directory("run")
        process = self.start_training(run, self.FOREVER)
        self.wait_for_step(run, 20, process)
        first = self.scrape(run)
        self.assertEqual([first.value(name) for name in (
            "restarts_total", "previous_steps", "lost_steps", "attempt", "target_steps")],
            [0, 0, 0, 1, 1000000])
        self.stop(process)
        stopped_at = run.result()["step"]
        for attempt in (2, 3):
            process = self.start_training(run, self.FOREVER, ranks=2)
            self.wait_for_step(run, stopped_at + 20, process)
            scrape = self.scrape(run)
            self.assert_step_matches(scrape, run)
            self.assertEqual([scrape.value(name) for name in (
                "restarts_total", "previous_steps", "lost_steps", "attempt")],
                [1, stopped_at, 0, attempt])
            self.stop(process)
            stopped_at = run.result()["step"]

    def test_steps_that_a_crash_lost_are_told(self):
        run = self.run_directory("run")
        process = self.start_training(run, self.FOREVER, "checkpoint.every_steps=30",
                                      "train.validate_every=0")
        self.wait_for_step(run, 50, process)
        fathom.wait_until(lambda: run.events("saved"), "saved")
        process.kill()
        process.wait()
        self.assertTrue((run.path / "targets.json").exists())
        reached = run.metrics()[-1]["step"]
        process = self.start_training(run, self.FOREVER, "train.validate_every=0")
        fathom.wait_until(lambda: run.events("resumed"), "resumed")
        self.wait_for_step(run, reached + 100, process)  # lines: those of both attempts
        scrape = self.scrape(run)
        self.assert_step_matches(scrape, run)
        resumed_at = run.events("resumed")[-1]["step"]
        self.assertGreater(reached, resumed_at)
        self.assertEqual(scrape.value("previous_steps"), resumed_at)
        self.assertEqual(scrape.value("lost_steps"), reached - resumed_at)
        self.stop(process)

    def test_detail_run_serves_no_layer_series(self):
        run = self.run_directory("run")
        process = self.start_training(run, self.FOREVER, "monitoring.detail=run")
        self.wait_for_step(run, 60, process)
        scrape = self.scrape(run)
        self.assertFalse([name for name in scrape.names() if name.startswith("fathom_layer_")])
        self.assertGreater(scrape.value("steps_total"), 0)
        self.stop(process)
        self.assertGreater(len(run.layers()), 0)


class Prometheus(prometheus.TestCase):
    KEYS = ("monitoring.listen=127.0.0.1:0", "train.validate_every=0", "checkpoint.every_steps=100")

    def begin(self, name, *words, **options):
        run = self.run_directory(name)
        return run, self.start_training(run, f"run.name={name}", *self.KEYS, *words, **options)

    def test_two_runs_are_told_apart_over_a_crash_and_a_move(self):
        slow = ("train.max_steps=1000000", "batch.tokens=3000", "batch.micro_tokens=1000",
                "checkpoint.every_steps=30")
        _, other = self.begin("other", *slow)
        run, process = self.begin("crashes", *slow)
        fathom.wait_until(lambda: self.has_scraped("crashes", 100), "scraped")
        fathom.wait_until(lambda: self.has_scraped("other", 50), "scraped")
        process.kill()
        process.wait()
        died_at = self.value('max_over_time(fathom_step{run="crashes"}[1h])')
        # Elsewhere, in another number of ranks: the series goes on.
        moved = fathom.Run(run.path.with_name("elsewhere"))
        run.path.rename(moved.path)
        process = self.start_training(moved, "run.name=crashes", *self.KEYS, *slow, ranks=2)
        fathom.wait_until(lambda: self.has_scraped("crashes", died_at + 50), "scraped")
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(fathom.finish(process).code, 75)
        resumed_at = moved.events("resumed")[0]["step"]
        last = self.value('last_over_time(fathom_step{run="crashes"}[1h])')
        first = self.value('min_over_time(fathom_step{run="crashes"}[1h])')
        done = died_at - first + last - resumed_at
        counted = self.value('increase(fathom_steps_total{run="crashes"}[1h])')
        self.assertTrue(0.8 * done < counted < 1.2 * done, (counted, done, died_at, resumed_at))
        # Of the whole run: without what the crash has cost.
        lost = self.value('last_over_time(fathom_lost_steps{run="crashes"}[1h])')
        self.assertGreaterEqual(lost, died_at - resumed_at)
        self.assertEqual(self.value('last_over_time(fathom_attempt{run="crashes"}[1h])'), 2)
        [(labels, _)] = self.query('count_over_time(fathom_step{run="crashes"}[1h])')
        self.assertEqual(labels, {"run": "crashes", "instance": "crashes", "job": "fathom"})
        both = self.query('count_over_time(fathom_step{run=~"crashes|other"}[1h])')
        self.assertEqual({labels["run"] for labels, _ in both}, {"crashes", "other"})
        info = self.query('last_over_time(fathom_run_info{run="crashes"}[1h])')
        self.assertEqual({labels["attempt"] for labels, _ in info}, {"1", "2"})
        self.assertEqual(len({labels["run_id"] for labels, _ in info}), 1)
        self.assertFalse(any("exported_run" in labels for labels, _ in info))
        other.send_signal(signal.SIGUSR1)
        self.assertEqual(fathom.finish(other).code, 75)

    def test_the_end_of_a_run_is_seen(self):
        status = 'max_over_time(fathom_run_status{run="ends",status="completed"}[1h])'
        run, process = self.begin("ends", "train.max_steps=40", "monitoring.linger_seconds=300")
        fathom.wait_until(lambda: self.value(status) == 1, "seen as completed")
        self.assertEqual(self.value('last_over_time(fathom_step{run="ends"}[1h])'), 40)
        self.assertEqual(run.result()["status"], "completed")
        self.assertIsNone(process.poll(), "it lingers")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(fathom.finish(process).code, 0)

    def test_a_stopped_run_does_not_linger(self):
        run, process = self.begin("stops", "train.max_steps=1000000",
                                  "monitoring.linger_seconds=300", ranks=2)
        self.wait_for_step(run, 3, process)
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(fathom.finish(process).code, 75)

    def test_the_file_for_a_collector_says_how_it_ended(self):
        run = self.run_directory("file")
        self.train(run, "run.name=file", "monitoring.listen=off", "train.max_steps=5")
        text = (run.path / "metrics.prom").read_text(encoding="utf-8")
        self.assertIn('fathom_run_status{status="completed",reason="max_steps",run="file"} 1', text)
        self.assertIn('fathom_step{run="file"} 5\n', text)
        check = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                               capture_output=True, check=False)
        self.assertEqual((check.returncode, check.stdout + check.stderr), (0, ""))


class Profile(fathom.TestCase):
    def test_it_shows_where_the_time_of_ten_steps_goes(self):
        plain, run = self.run_directory("plain"), self.run_directory("run")
        self.train(plain, "train.max_steps=15")
        result = self.train(run, "train.max_steps=15", "--profile", ranks=2)
        self.assert_same_run(plain, run)

        table = [line.split() for line in result.stderr.splitlines()]
        shares = [float(words[-3].rstrip("%")) for words in table
                  if len(words) >= 7 and words[-3].endswith("%")]
        self.assertGreater(len(shares), 8)
        self.assertAlmostEqual(sum(shares), 100, delta=1)
        trace = json.loads((run.path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
        self.assertEqual({event["args"]["step"] for event in trace}, set(range(2, 12)))
        for name in ("linear", "layer_norm", "self_attention", "linear_cross_entropy", "adam"):
            with self.subTest(op=name):
                self.assertTrue([words for words in table if words[:1] == [name]])
                self.assertTrue([e for e in trace if e["name"] == name and e["dur"] >= 0])
        linear = [e["args"] for e in trace if e["name"] == "linear"]
        forward = sum(a["flops"] for a in linear if a["phase"] == "forward")
        backward = sum(a["flops"] for a in linear if a["phase"] == "backward")
        self.assertGreater(forward, 0)
        self.assertEqual(backward, 2 * forward)  # the derivatives of both factors


if __name__ == "__main__":
    unittest.main()
