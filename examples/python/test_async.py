"""The generated client on httpx against a real server."""

import asyncio
import unittest

import limits_client as limits
from server import Server

KEY = limits.Key("1", org="7")


class Calls(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.server = Server()
        self.client = limits.AsyncClient(self.server.url)

    async def asyncTearDown(self) -> None:
        await self.client.aclose()
        self.server.__exit__(None, None, None)

    async def test_acquire_and_settle(self) -> None:
        async with await self.client.api.acquire(KEY, limits.ApiCost(tpm=300)) as lease:
            self.assertEqual(limits.ApiLeft(rpm=9, tpm=700), lease.remaining)
            await lease.more(limits.ApiCost(tpm=100))
            await lease.settle(limits.ApiCost(tpm=50))
        with self.assertRaises(limits.LeaseEnded):
            await lease.keep()
        with self.assertRaises(ZeroDivisionError):
            async with await self.client.api.acquire(KEY, limits.ApiCost(rpm=5)):
                1 / 0
        self.assertEqual(9, (await self.client.api.peek(KEY)).available.rpm)

    async def test_wrong_url(self) -> None:
        with self.assertRaisesRegex(ValueError, r"url 'ftp://x' does not start with http:// or https://"):
            limits.AsyncClient("ftp://x")

    async def test_denied(self) -> None:
        await self.client.api.acquire(KEY, limits.ApiCost(rpm=10))
        with self.assertRaises(limits.Denied) as denied:
            await self.client.api.acquire(KEY)
        self.assertEqual(("rpm",), denied.exception.limits)

    async def test_cancelled(self) -> None:
        """A call that is cancelled while it waits takes nothing, and the next one gets its tokens."""
        org = limits.Org("7")
        await self.client.api.acquire(org, limits.ApiCost(tpm=10_000))
        waiting = asyncio.create_task(self.client.api.acquire(org, limits.ApiCost(tpm=200), wait=30.0))
        await asyncio.sleep(0.2)
        waiting.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await waiting
        lease = await self.client.api.acquire(org, limits.ApiCost(tpm=100), wait=5.0)
        await asyncio.sleep(1.5)
        left = (await self.client.api.peek(org)).available.tpm
        assert left is not None
        self.assertGreater(left, 150, "the cancelled call has taken its tokens")
        await lease.keep()

    async def test_cancelled_in_the_block(self) -> None:
        async def work(begun: asyncio.Event) -> None:
            async with await self.client.jobs.acquire(limits.Org("7")):
                begun.set()
                await asyncio.sleep(60)

        events = [asyncio.Event(), asyncio.Event()]
        tasks = [asyncio.create_task(work(begun)) for begun in events]
        for begun in events:
            await begun.wait()
        with self.assertRaises(limits.Denied):
            await self.client.jobs.acquire(limits.Org("7"))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await (await self.client.jobs.acquire(limits.Org("7"))).keep()

    async def test_all_or_none(self) -> None:
        first = self.client.api.claim(KEY, limits.ApiCost(rpm=2))
        second = self.client.jobs.claim(limits.Org("7"))
        await self.client.acquire_all(first, second)
        self.assertEqual(8, first.lease.remaining.rpm)
        await self.client.jobs.acquire(limits.Org("7"))
        with self.assertRaises(limits.Denied):
            await self.client.acquire_all(first, second)
        self.assertEqual(8, (await self.client.api.peek(KEY)).available.rpm)

    async def test_idempotency(self) -> None:
        first = await self.client.api.acquire(KEY, limits.ApiCost(rpm=4), idempotency_key="k")
        again = await self.client.api.acquire(KEY, limits.ApiCost(rpm=4), idempotency_key="k")
        self.assertEqual(first.name, again.name)

    async def test_alive(self) -> None:
        async with limits.AsyncClient(self.server.url, alive_every=0.02) as client:
            lease = await client.jobs.acquire(limits.Org("7"))
            await asyncio.sleep(0.2)
            self.assertFalse(lease.lost)
            await limits.AsyncLease(self.client, limits.JobsLeft, {"lease": lease.name}).release()
            for _ in range(500):
                if lease.lost:
                    break
                await asyncio.sleep(0.01)
            self.assertTrue(lease.lost)


if __name__ == "__main__":
    unittest.main()
