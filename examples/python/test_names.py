"""Named calls on a template whose catalog is stored: each name has the buckets of its own entry."""

import unittest

import limits_client as limits
from server import Server, Table

KEY = limits.Key("1", org="7")
CATALOG = """
gateway:
  gpt-5: {aliases: [latest]}
  o3: {entities: {key: {rpm: {capacity: 2}}}}
"""


class Calls(unittest.TestCase):
    def setUp(self) -> None:
        self.table = Table()
        self.addCleanup(self.table.close)
        self.table.apply(CATALOG)
        server = Server(*self.table.flags)
        self.addCleanup(server.__exit__, None, None, None)
        self.url = server.url

    def test_names(self) -> None:
        with limits.Client(self.url) as client:
            gpt = client.gateway.named("gpt-5")
            with gpt.acquire(KEY, limits.GatewayUsage(input=1_000, output=500)) as lease:
                self.assertTrue(48_500 <= (lease.remaining.tpm or 0) < 49_000, lease.remaining)
                lease.settle(limits.GatewayUsage(input=1_000))
            latest = client.gateway.named("latest").peek(KEY).available
            self.assertIn(client.gateway.named("latest").acquire(KEY).remaining.rpm, (58, 59))  # one a second comes back
            self.assertGreaterEqual(latest.tpm or 0, 49_000)
            o3 = client.gateway.named("o3")
            first, second = o3.claim(KEY), client.gateway.named("gpt-5").claim(KEY)
            client.acquire_all(first, second)
            self.assertEqual(1, first.lease.remaining.rpm)
            self.assertLess(second.lease.remaining.rpm or 0, 60)
            o3.acquire(KEY).keep()
            with self.assertRaises(limits.Denied) as denied:
                o3.acquire(KEY)
            self.assertEqual(("gateway/o3", ("rpm",)), (denied.exception.resource, denied.exception.limits))
            with self.assertRaises(limits.Invalid) as unknown:
                client.gateway.named("gpt-6").acquire(KEY)
            self.assertEqual(404, unknown.exception.status)


class AsyncCalls(unittest.IsolatedAsyncioTestCase):
    async def test_names(self) -> None:
        table = Table()
        self.addCleanup(table.close)
        table.apply(CATALOG)
        with Server(*table.flags) as server:
            async with limits.AsyncClient(server.url) as client:
                async with await client.gateway.named("gpt-5").acquire(KEY, limits.GatewayUsage(input=1_000)) as lease:
                    self.assertTrue(49_000 <= (lease.remaining.tpm or 0) < 49_500, lease.remaining)
                snapshot = await client.gateway.named("o3").peek(KEY)
                self.assertEqual((2, 50_000), (snapshot.available.rpm, snapshot.available.tpm))


if __name__ == "__main__":
    unittest.main()
