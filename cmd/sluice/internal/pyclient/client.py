from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Dict, Generic, List, Optional, Protocol, Tuple, Type, TypeVar, Union

if TYPE_CHECKING:
    import ssl
    from types import TracebackType

    import httpx

# An amount of money: 0.25 is Decimal("0.25") or "0.25", never a float.
Money = Union[Decimal, str]


class LimitError(Exception):
    """A call that was not served. Nothing was charged, unless the error says so."""

    def __init__(self, status: int, problem: Dict[str, Any]) -> None:
        self.status = status
        self.detail = str(problem.get("detail", "The server has not said why."))
        self.resource = str(problem.get("resource", ""))
        self.problem = problem
        super().__init__(self.detail)


class Denied(LimitError):
    """Tokens are missing: come back after retry_after seconds. limits are the names of those that deny."""

    def __init__(self, status: int, problem: Dict[str, Any]) -> None:
        super().__init__(status, problem)
        self.retry_after = int(problem.get("retry_after", 0))
        self.limits = tuple(str(name) for name in problem.get("violated-policies", ()))


class Invalid(LimitError):
    """Something is wrong with the call, or it costs more than its limit ever holds: repeating does not help."""


class Unavailable(LimitError):
    """The limits could not be looked up. If maybe_applied, the server may have done what was asked."""

    def __init__(self, status: int, problem: Dict[str, Any], maybe_applied: bool = False) -> None:
        super().__init__(status, problem)
        self.retry_after = int(problem.get("retry_after", 0))
        self.maybe_applied = maybe_applied


class LeaseEnded(LimitError):
    """The lease has ended before, is lost, or is not this server's: the call has changed nothing.

    ended says how, if that is known: settled, kept, released, expired or lost.
    """

    def __init__(self, status: int, problem: Dict[str, Any]) -> None:
        super().__init__(status, problem)
        self.ended = str(problem.get("ended", ""))


class _Entity(Protocol):
    def _json(self) -> Dict[str, str]: ...


class _Amount(Protocol):
    def _json(self) -> Dict[str, object]: ...


class _Numbers(Protocol):
    @classmethod
    def _read(cls: Type[_N], numbers: Dict[str, Any]) -> _N: ...


_N = TypeVar("_N")
E = TypeVar("E", bound=_Entity)
A = TypeVar("A", bound=_Amount)
L = TypeVar("L", bound=_Numbers)


def _given(numbers: Dict[str, object]) -> Dict[str, object]:
    return {name: n for name, n in numbers.items() if n is not None}


def _money(amount: Optional[Money]) -> Optional[str]:
    if amount is None or isinstance(amount, str):
        return amount
    if not isinstance(amount, Decimal):
        raise TypeError("an amount of money is a Decimal or a text, such as Decimal('0.25')")
    return format(amount, "f")


def _tokens(n: Any) -> Optional[int]:
    return None if n is None else int(n)


def _amount(n: Any) -> Optional[Decimal]:
    return None if n is None else Decimal(str(n))


@dataclass(frozen=True)
class Bucket(Generic[L]):
    """A bucket that a call charges: of the entity, or of one above it."""

    kind: str
    available: L
    capacity: L
    burst: L
    full_in: float
    """Seconds until all limits that refill are full."""
    exists: bool
    all_names: bool = False
    """All names of a template have the bucket together."""


@dataclass(frozen=True)
class Snapshot(Generic[L]):
    """The tokens that are left, and the buckets that have them, nearest first."""

    available: L
    buckets: Tuple[Bucket[L], ...]


@dataclass(frozen=True)
class _Reply:
    status: int
    body: Any


@dataclass(frozen=True)
class _Call:
    path: str
    body: object = None
    key: Optional[str] = None
    wait: float = 0.0
    repeatable: bool = False  # a second one changes nothing more

    def headers(self, token: Optional[str]) -> Dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = "Bearer " + token
        if self.key is not None:
            headers["Idempotency-Key"] = self.key
        return headers

    def text(self) -> bytes:
        return b"" if self.body is None else json.dumps(self.body).encode()


class _NotSent(Exception):
    """No connection came about: the server has not seen the call."""


class _NoReply(Exception):
    """The server may have seen the call."""


def _checked(url: str) -> str:
    if not url.startswith(("http://", "https://")):  # urllib would read files, and wait for servers of FTP
        raise ValueError(
            f"url {url!r} does not start with http:// or https://: pass one such as http://127.0.0.1:8080"
        )
    return url.rstrip("/")


_PAUSES = (0.0, 0.05, 0.25)  # before each attempt of a call, in seconds


def _failed(call: _Call, cause: Exception) -> Unavailable:
    problem = {"detail": f"The server does not answer: {cause}"}
    return Unavailable(0, problem, maybe_applied=isinstance(cause, _NoReply) and not call.path.endswith("/peek"))


def _check(reply: _Reply) -> Any:
    if reply.status < 300:
        return reply.body
    problem: Dict[str, Any] = reply.body if isinstance(reply.body, dict) else {}
    if reply.status in (402, 429):
        raise Denied(reply.status, problem)
    if reply.status in (410, 421) or reply.status == 404 and problem.get("detail") == "There is no such lease.":
        raise LeaseEnded(reply.status, problem)
    if 400 <= reply.status < 500:
        raise Invalid(reply.status, problem)
    raise Unavailable(reply.status, problem, maybe_applied="retry_after" not in problem)


def _parse(status: int, text: bytes) -> _Reply:
    try:
        return _Reply(status, json.loads(text, parse_float=Decimal) if text else None)
    except ValueError:
        return _Reply(status, None)


def _acquire_body(of: Optional[str], entity: _Entity, amount: Optional[_Amount]) -> Dict[str, object]:
    body = _entity_body(of, entity)
    if amount is not None:
        body.update(amount._json())
    return body


def _entity_body(of: Optional[str], entity: _Entity) -> Dict[str, object]:
    body: Dict[str, object] = {"entity": entity._json()}
    if of is not None:
        body["name"] = of
    return body


def _amount_body(amount: Optional[_Amount]) -> Dict[str, object]:
    return {} if amount is None else amount._json()


def _snapshot(numbers: Type[L], body: Dict[str, Any]) -> Snapshot[L]:
    return Snapshot(
        available=numbers._read(body["available"]),
        buckets=tuple(
            Bucket(
                kind=b["kind"],
                available=numbers._read(b["available"]),
                capacity=numbers._read(b["capacity"]),
                burst=numbers._read(b["burst"]),
                full_in=b["full_in_ms"] / 1000,
                exists=b["exists"],
                all_names=b.get("all_names", False),
            )
            for b in body["buckets"]
        ),
    )


def _is_open(err: LimitError) -> bool:
    """Tell whether a lease is open after a call that should have ended it."""
    return isinstance(err, Invalid) or isinstance(err, Unavailable) and err.status == 0 and not err.maybe_applied


class _State(Generic[A, L]):
    """What a lease knows."""

    def __init__(self, numbers: Type[L], body: Dict[str, Any]) -> None:
        self._numbers = numbers
        self.name: str = body["lease"]
        """Names the lease to the server."""
        self.remaining: L = numbers._read(body.get("remaining", {}))
        """The tokens that the last write left, as far as they are known."""
        self.degraded: bool = bool(body.get("degraded", False))
        """It was admitted without the store."""
        self.shadowed: bool = bool(body.get("shadowed", False))
        """It would have been denied, were the limit not in shadow."""
        self.lost = False
        """Others may have what the lease held: stop the work."""
        self.ended = False

    def _path(self, what: str) -> str:
        return f"/v1/leases/{self.name}/{what}"

    def _left(self, body: Any) -> None:
        if isinstance(body, dict):
            self.remaining = self._numbers._read(body.get("remaining", {}))

    def _gone(self, err: LeaseEnded) -> None:
        self.lost = err.ended == "lost" or not self.ended


class Lease(_State[A, L]):
    """What an acquire took. As a context manager it keeps that at its end, and releases it on an exception."""

    def __init__(self, client: _Client, numbers: Type[L], body: Dict[str, Any]) -> None:
        super().__init__(numbers, body)
        self._client = client

    def settle(self, actual: Optional[A] = None) -> None:
        """End the lease at what the call took. The rest comes back."""
        self._left(self._client._end(self, "settle", _amount_body(actual)))

    def more(self, more: A) -> None:
        """Take more. Raises Denied like acquire; the lease stays as it was then."""
        self._left(self._client._call(_Call(self._path("more"), _amount_body(more))))

    def keep(self) -> None:
        """End the lease as it is."""
        self._client._end(self, "keep", None)

    def release(self) -> None:
        """End the lease and give all of it back."""
        self._client._end(self, "release", None)

    def __enter__(self) -> Lease[A, L]:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self.ended:
            return
        try:
            if kind is None:
                self.keep()
            else:
                self.release()
        except LimitError:
            pass  # the lease runs out by itself, as keep does


class Claim(Generic[A, L]):
    """A part of acquire_all."""

    def __init__(self, numbers: Type[L], body: Dict[str, object]) -> None:
        self._numbers = numbers
        self._body = body
        self._lease: Optional[Lease[A, L]] = None

    @property
    def lease(self) -> Lease[A, L]:
        """The lease, once acquire_all has returned."""
        if self._lease is None:
            raise RuntimeError("the claim has no lease: pass it to acquire_all first")
        return self._lease


class Resource(Generic[E, A, L]):
    """The entry to one resource."""

    def __init__(self, client: _Client, name: str, numbers: Type[L], of: Optional[str] = None) -> None:
        self._client = client
        self._name = name
        self._numbers = numbers
        self._of = of

    def acquire(
        self, entity: E, amount: Optional[A] = None, *, wait: float = 0.0, idempotency_key: Optional[str] = None
    ) -> Lease[A, L]:
        """Take amount, or the per_call of each limit, for at most wait seconds.

        Raises Denied, Invalid or Unavailable. A repeated call with the same idempotency_key returns the same
        lease, for 10 minutes.
        """
        body = _acquire_body(self._of, entity, amount)
        if wait > 0:
            body["wait"] = f"{int(wait * 1000)}ms"
        call = _Call(f"/v1/{self._name}/acquire", body, idempotency_key, wait, idempotency_key is not None)
        return self._client._opened(Lease(self._client, self._numbers, self._client._call(call)))

    def claim(self, entity: E, amount: Optional[A] = None) -> Claim[A, L]:
        """Prepare a part of acquire_all."""
        body = _acquire_body(self._of, entity, amount)
        body["resource"] = self._name
        return Claim(self._numbers, body)

    def peek(self, entity: E) -> Snapshot[L]:
        """Read what is left, and change nothing."""
        call = _Call(f"/v1/{self._name}/peek", _entity_body(self._of, entity), repeatable=True)
        return _snapshot(self._numbers, self._client._call(call))


class Template(Generic[E, A, L]):
    """The entry to a template, which has a resource for each name of a catalog."""

    def __init__(self, client: _Client, name: str, numbers: Type[L]) -> None:
        self._client = client
        self._name = name
        self._numbers = numbers

    def named(self, name: str) -> Resource[E, A, L]:
        """Return the resource of a name. Its calls raise Invalid if the catalog does not have the name."""
        return Resource(self._client, self._name, self._numbers, name)


class _Client:
    """Calls of the server with urllib. Each takes a connection of its own."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        token: Optional[str] = None,
        timeout: float = 10.0,
        context: Optional[ssl.SSLContext] = None,
        alive_every: float = 30.0,
    ) -> None:
        self._url = _checked(url)
        self._token = token
        self._timeout = timeout
        handlers: List[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if context is not None:
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)
        self._alive_every = alive_every
        self._open: Dict[str, Lease[Any, Any]] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._keeper: Optional[threading.Thread] = None

    def acquire_all(
        self, *claims: Claim[Any, Any], idempotency_key: Optional[str] = None
    ) -> Tuple[Lease[Any, Any], ...]:
        """Acquire all claims, or none. Each claim then has its lease, typed."""
        bodies = [c._body for c in claims]
        call = _Call("/v1/acquire", bodies, idempotency_key, repeatable=idempotency_key is not None)
        for claim, body in zip(claims, self._call(call)):
            claim._lease = self._opened(Lease(self, claim._numbers, body))
        return tuple(c.lease for c in claims)

    def close(self) -> None:
        """End the thread that keeps open leases alive. The leases run out."""
        self._closed.set()

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def _send(self, call: _Call) -> _Reply:
        request = urllib.request.Request(
            self._url + call.path, call.text(), call.headers(self._token), method="POST"
        )
        try:
            with self._opener.open(request, timeout=self._timeout + call.wait) as reply:
                return _parse(reply.status, reply.read())
        except urllib.error.HTTPError as err:
            with err:
                return _parse(err.code, err.read())
        except urllib.error.URLError as err:
            if isinstance(err.reason, (ConnectionRefusedError, socket.gaierror)):
                raise _NotSent(str(err.reason)) from err
            raise _NoReply(str(err.reason)) from err
        except OSError as err:
            raise _NoReply(str(err)) from err

    def _call(self, call: _Call) -> Any:
        failed: Exception = _NotSent("")
        for pause in _PAUSES:
            time.sleep(pause)
            try:
                return _check(self._send(call))
            except _NotSent as err:
                failed = err
            except _NoReply as err:
                failed = err
                if not call.repeatable:
                    break
        raise _failed(call, failed)

    def _opened(self, lease: Lease[A, L]) -> Lease[A, L]:
        with self._lock:
            self._open[lease.name] = lease
            if self._keeper is None:
                self._keeper = threading.Thread(target=self._keep_alive, name="limits", daemon=True)
                self._keeper.start()
        return lease

    def _end(self, lease: Lease[A, L], how: str, body: Optional[Dict[str, object]]) -> Any:
        try:
            reply = self._call(_Call(lease._path(how), body))
        except LimitError as err:
            if not _is_open(err):
                self._ended(lease)
            raise
        self._ended(lease)
        return reply

    def _ended(self, lease: Lease[A, L]) -> None:
        lease.ended = True
        with self._lock:
            self._open.pop(lease.name, None)

    def _keep_alive(self) -> None:
        while not self._closed.wait(self._alive_every):
            with self._lock:
                leases = list(self._open.values())
            for lease in leases:
                try:
                    self._call(_Call(lease._path("alive"), repeatable=True))
                except LeaseEnded as err:
                    lease._gone(err)
                    with self._lock:
                        self._open.pop(lease.name, None)
                except LimitError:
                    pass  # the next one may get through


class AsyncLease(_State[A, L]):
    """What an acquire took. As a context manager it keeps that at its end, and releases it on an exception."""

    def __init__(self, client: _AsyncClient, numbers: Type[L], body: Dict[str, Any]) -> None:
        super().__init__(numbers, body)
        self._client = client

    async def settle(self, actual: Optional[A] = None) -> None:
        """End the lease at what the call took. The rest comes back."""
        self._left(await self._client._end(self, "settle", _amount_body(actual)))

    async def more(self, more: A) -> None:
        """Take more. Raises Denied like acquire; the lease stays as it was then."""
        self._left(await self._client._call(_Call(self._path("more"), _amount_body(more))))

    async def keep(self) -> None:
        """End the lease as it is."""
        await self._client._end(self, "keep", None)

    async def release(self) -> None:
        """End the lease and give all of it back."""
        await self._client._end(self, "release", None)

    async def __aenter__(self) -> AsyncLease[A, L]:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self.ended:
            return
        try:
            if kind is None:
                await self.keep()
            else:
                await self.release()
        except LimitError:
            pass  # the lease runs out by itself, as keep does


class AsyncClaim(Generic[A, L]):
    """A part of acquire_all."""

    def __init__(self, numbers: Type[L], body: Dict[str, object]) -> None:
        self._numbers = numbers
        self._body = body
        self._lease: Optional[AsyncLease[A, L]] = None

    @property
    def lease(self) -> AsyncLease[A, L]:
        """The lease, once acquire_all has returned."""
        if self._lease is None:
            raise RuntimeError("the claim has no lease: pass it to acquire_all first")
        return self._lease


class AsyncResource(Generic[E, A, L]):
    """The entry to one resource."""

    def __init__(self, client: _AsyncClient, name: str, numbers: Type[L], of: Optional[str] = None) -> None:
        self._client = client
        self._name = name
        self._numbers = numbers
        self._of = of

    async def acquire(
        self, entity: E, amount: Optional[A] = None, *, wait: float = 0.0, idempotency_key: Optional[str] = None
    ) -> AsyncLease[A, L]:
        """Take amount, or the per_call of each limit, for at most wait seconds.

        Raises Denied, Invalid or Unavailable. A repeated call with the same idempotency_key returns the same
        lease, for 10 minutes. A call that is cancelled while it waits takes nothing.
        """
        body = _acquire_body(self._of, entity, amount)
        if wait > 0:
            body["wait"] = f"{int(wait * 1000)}ms"
        call = _Call(f"/v1/{self._name}/acquire", body, idempotency_key, wait, idempotency_key is not None)
        return self._client._opened(AsyncLease(self._client, self._numbers, await self._client._call(call)))

    def claim(self, entity: E, amount: Optional[A] = None) -> AsyncClaim[A, L]:
        """Prepare a part of acquire_all."""
        body = _acquire_body(self._of, entity, amount)
        body["resource"] = self._name
        return AsyncClaim(self._numbers, body)

    async def peek(self, entity: E) -> Snapshot[L]:
        """Read what is left, and change nothing."""
        call = _Call(f"/v1/{self._name}/peek", _entity_body(self._of, entity), repeatable=True)
        return _snapshot(self._numbers, await self._client._call(call))


class AsyncTemplate(Generic[E, A, L]):
    """The entry to a template, which has a resource for each name of a catalog."""

    def __init__(self, client: _AsyncClient, name: str, numbers: Type[L]) -> None:
        self._client = client
        self._name = name
        self._numbers = numbers

    def named(self, name: str) -> AsyncResource[E, A, L]:
        """Return the resource of a name. Its calls raise Invalid if the catalog does not have the name."""
        return AsyncResource(self._client, self._name, self._numbers, name)


class _AsyncClient:
    """Calls of the server with httpx, which has to be installed."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        token: Optional[str] = None,
        timeout: float = 10.0,
        transport: Optional[httpx.AsyncBaseTransport] = None,
        alive_every: float = 30.0,
    ) -> None:
        import httpx

        url = _checked(url)
        self._token = token
        self._timeout = timeout
        self._http = httpx.AsyncClient(base_url=url, transport=transport, trust_env=False)
        self._not_sent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
        self._no_reply = httpx.TransportError
        self._alive_every = alive_every
        self._open: Dict[str, AsyncLease[Any, Any]] = {}
        self._keeper: Optional[asyncio.Task[None]] = None

    async def acquire_all(
        self, *claims: AsyncClaim[Any, Any], idempotency_key: Optional[str] = None
    ) -> Tuple[AsyncLease[Any, Any], ...]:
        """Acquire all claims, or none. Each claim then has its lease, typed."""
        bodies = [c._body for c in claims]
        call = _Call("/v1/acquire", bodies, idempotency_key, repeatable=idempotency_key is not None)
        for claim, body in zip(claims, await self._call(call)):
            claim._lease = self._opened(AsyncLease(self, claim._numbers, body))
        return tuple(c.lease for c in claims)

    async def aclose(self) -> None:
        """End the connections. Leases that are still open run out."""
        if self._keeper is not None:
            self._keeper.cancel()
        await self._http.aclose()

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.aclose()

    async def _send(self, call: _Call) -> _Reply:
        try:
            reply = await self._http.post(
                call.path,
                content=call.text(),
                headers=call.headers(self._token),
                timeout=self._timeout + call.wait,
            )
        except self._not_sent as err:
            raise _NotSent(str(err)) from err
        except self._no_reply as err:
            raise _NoReply(str(err)) from err
        return _parse(reply.status_code, reply.content)

    async def _call(self, call: _Call) -> Any:
        failed: Exception = _NotSent("")
        for pause in _PAUSES:
            await asyncio.sleep(pause)
            try:
                return _check(await self._send(call))
            except _NotSent as err:
                failed = err
            except _NoReply as err:
                failed = err
                if not call.repeatable:
                    break
        raise _failed(call, failed)

    def _opened(self, lease: AsyncLease[A, L]) -> AsyncLease[A, L]:
        self._open[lease.name] = lease
        if self._keeper is None:
            self._keeper = asyncio.get_running_loop().create_task(self._keep_alive())
        return lease

    async def _end(self, lease: AsyncLease[A, L], how: str, body: Optional[Dict[str, object]]) -> Any:
        try:
            reply = await self._call(_Call(lease._path(how), body))
        except LimitError as err:
            if not _is_open(err):
                self._ended(lease)
            raise
        self._ended(lease)
        return reply

    def _ended(self, lease: AsyncLease[A, L]) -> None:
        lease.ended = True
        self._open.pop(lease.name, None)

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(self._alive_every)
            for lease in list(self._open.values()):
                try:
                    await self._call(_Call(lease._path("alive"), repeatable=True))
                except LeaseEnded as err:
                    lease._gone(err)
                    self._open.pop(lease.name, None)
                except LimitError:
                    pass  # the next one may get through
