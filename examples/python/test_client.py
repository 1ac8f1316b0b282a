"""The generated client against a real server, as the Go API is used: each test has a server of its own."""

import http.server
import threading
import time
import unittest
from decimal import Decimal
from typing import List

import limits_client as limits
from server import Server

KEY = limits.Key("1", org="7")


class Calls(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Server()
        self.client = limits.Client(self.server.url)

    def tearDown(self) -> None:
        self.client.close()
        self.server.__exit__(None, None, None)

    def rpm(self) -> int:
        left = self.client.api.peek(KEY).available.rpm
        assert left is not None
        return left

    def tpm(self) -> int:
        left = self.client.model.peek(KEY).available.tpm
        assert left is not None
        return left

    def test_acquire_and_settle(self) -> None:
        lease = self.client.api.acquire(KEY, limits.ApiCost(tpm=300))
        self.assertEqual(limits.ApiLeft(rpm=9, tpm=700), lease.remaining)
        lease.more(limits.ApiCost(tpm=100))
        self.assertEqual(600, lease.remaining.tpm)
        lease.settle(limits.ApiCost(tpm=50))
        self.assertTrue(950 <= (lease.remaining.tpm or 0) <= 960, lease.remaining)
        with self.assertRaises(limits.LeaseEnded) as ended:
            lease.settle(limits.ApiCost(tpm=0))
        self.assertEqual("settled", ended.exception.ended)
        with self.assertRaises(limits.LeaseEnded):
            lease.more(limits.ApiCost(tpm=1))

    def test_unknown_name(self) -> None:
        model = self.client.gateway.named("gpt-5")
        for call in (lambda: model.acquire(KEY, limits.GatewayUsage(input=5)), lambda: model.peek(KEY)):
            with self.assertRaises(limits.Invalid) as unknown:
                call()
            self.assertEqual(404, unknown.exception.status)
            self.assertIn("the catalog does not have the name gpt-5", str(unknown.exception))
        with self.assertRaises(limits.Invalid) as unknown:
            self.client.acquire_all(self.client.api.claim(KEY), model.claim(KEY))
        self.assertEqual(404, unknown.exception.status)
        self.assertEqual(10, self.rpm())

    def test_money_and_usage(self) -> None:
        lease = self.client.model.acquire(KEY, limits.ModelUsage(input=1000, output=200, call=1))
        self.assertEqual(Decimal("4.9855"), lease.remaining.month)
        lease.settle(limits.ModelUsage(input=400))
        self.assertEqual(Decimal("4.999"), lease.remaining.month)
        org = limits.Org("7")
        self.client.model.acquire(org, limits.ModelCost(month=Decimal("1E-9"))).keep()
        lease = self.client.model.acquire(org, limits.ModelCost(month="4.5"))
        self.assertEqual(Decimal("0.498999999"), lease.remaining.month)
        with self.assertRaises(limits.Denied) as denied:
            self.client.model.acquire(org, limits.ModelCost(month=Decimal("0.5")))
        self.assertEqual((402, ("month",)), (denied.exception.status, denied.exception.limits))

    def test_with_keeps_or_releases(self) -> None:
        with self.client.model.acquire(KEY, limits.ModelCost(tpm=40_000)) as lease:
            pass
        self.assertTrue(lease.ended)
        before = self.tpm()
        self.assertLess(before, 70_000)
        with self.assertRaises(ZeroDivisionError):
            with self.client.model.acquire(KEY, limits.ModelCost(tpm=30_000)):
                1 / 0
        self.assertGreaterEqual(self.tpm(), before)
        with self.client.jobs.acquire(limits.Org("7")), self.client.jobs.acquire(limits.Org("7")):
            with self.assertRaises(limits.Denied):
                self.client.jobs.acquire(limits.Org("7"))
        self.client.jobs.acquire(limits.Org("7")).keep()

    def test_denied_and_invalid(self) -> None:
        self.client.api.acquire(KEY, limits.ApiCost(rpm=10))
        with self.assertRaises(limits.Denied) as denied:
            self.client.api.acquire(KEY)
        error = denied.exception
        self.assertEqual((429, "api", ("rpm",), 6), (error.status, error.resource, error.limits, error.retry_after))
        for entity, cost in (
            (limits.Key("a#b", org="7"), None),
            (limits.Key("nobody"), None),  # its org is not stored
            (KEY, limits.ApiCost(tpm=1_001)),
            (KEY, limits.ApiCost(tpm=-1)),
        ):
            with self.assertRaises(limits.Invalid):
                self.client.api.acquire(entity, cost)
        with self.assertRaises(TypeError):
            self.client.model.acquire(KEY, limits.ModelCost(month=0.25))  # type: ignore[arg-type]

    def test_wait(self) -> None:
        org = limits.Org("7")
        self.client.api.acquire(org, limits.ApiCost(tpm=10_000))
        began = time.monotonic()
        self.client.api.acquire(org, limits.ApiCost(tpm=100), wait=5.0)
        self.assertGreater(time.monotonic() - began, 0.5)
        with self.assertRaises(limits.Denied):
            self.client.api.acquire(org, limits.ApiCost(tpm=9_000), wait=1.0)

    def test_all_or_none(self) -> None:
        first = self.client.api.claim(KEY, limits.ApiCost(rpm=2))
        second = self.client.jobs.claim(limits.Org("7"))
        self.client.acquire_all(first, second)
        self.assertEqual(8, first.lease.remaining.rpm)
        first.lease.release()
        self.client.jobs.acquire(limits.Org("7"))
        with self.assertRaises(limits.Denied):
            self.client.acquire_all(first, second)
        self.assertEqual(10, self.rpm())

    def test_idempotency(self) -> None:
        first = self.client.api.acquire(KEY, limits.ApiCost(rpm=4), idempotency_key="k")
        again = self.client.api.acquire(KEY, limits.ApiCost(rpm=4), idempotency_key="k")
        self.assertEqual((first.name, 6), (again.name, self.rpm()))
        with self.assertRaises(limits.Invalid):
            self.client.api.acquire(KEY, limits.ApiCost(rpm=5), idempotency_key="k")

    def test_alive(self) -> None:
        with limits.Client(self.server.url, alive_every=0.02) as client:
            lease = client.jobs.acquire(limits.Org("7"))
            time.sleep(0.2)
            self.assertFalse(lease.lost)
            limits.Lease(self.client, limits.JobsLeft, {"lease": lease.name}).release()
            deadline = time.monotonic() + 10
            while not lease.lost and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertTrue(lease.lost)

    def test_token(self) -> None:
        with self.assertRaises(limits.Unavailable) as failed:
            limits.Client("http://127.0.0.1:9").api.acquire(KEY)
        self.assertFalse(failed.exception.maybe_applied)


class Flaky(http.server.BaseHTTPRequestHandler):
    """A server that reads a call, and ends the connection."""

    seen: List[str] = []

    def do_POST(self) -> None:
        Flaky.seen.append(self.path)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


class Urls(unittest.TestCase):
    def test_wrong(self) -> None:
        for url in ("127.0.0.1:8080", "ftp://127.0.0.1:8080", "file:///etc/hosts", ""):
            with self.assertRaises(ValueError) as wrong:
                limits.Client(url)
            self.assertEqual(
                f"url {url!r} does not start with http:// or https://: pass one such as http://127.0.0.1:8080",
                str(wrong.exception),
            )


class Retries(unittest.TestCase):
    def test_lost_replies(self) -> None:
        """A call that may have been applied is repeated only if it has an idempotency_key, or changes nothing."""
        server = http.server.HTTPServer(("127.0.0.1", 0), Flaky)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = limits.Client(f"http://127.0.0.1:{server.server_address[1]}")
        for want, maybe, call in (
            (1, True, lambda: client.api.acquire(KEY)),
            (3, True, lambda: client.api.acquire(KEY, idempotency_key="k")),
            (3, False, lambda: client.api.peek(KEY)),
        ):
            Flaky.seen.clear()
            with self.assertRaises(limits.Unavailable) as failed:
                call()
            self.assertEqual((want, maybe), (len(Flaky.seen), failed.exception.maybe_applied))
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    unittest.main()
