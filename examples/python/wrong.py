"""Calls that do not type-check: test_types.py holds that each is an error, of this kind."""

from decimal import Decimal

import limits_client as limits

client = limits.Client()
key = limits.Key("1", org="7")

limits.ApiCost(tmp=1)  # wrong: call-arg
limits.ModelUsage(inptu=1)  # wrong: call-arg
limits.Key("1", organisation="7")  # wrong: call-arg
limits.User("1")  # wrong: attr-defined
client.apis.acquire(key)  # wrong: attr-defined
client.jobs.acquire(key)  # wrong: arg-type
client.api.acquire(key, limits.ModelCost(tpm=1))  # wrong: arg-type
client.api.acquire("key-1")  # wrong: arg-type
client.model.acquire(key, limits.ModelCost(month=0.25))  # wrong: arg-type
client.model.acquire(key, limits.ModelCost(month=Decimal("0.25"))).settle(limits.ApiCost(rpm=1))  # wrong: arg-type
client.model.peek(key).available.rpm  # wrong: attr-defined
limits.AsyncClient().api.acquire(key).settle()  # wrong: attr-defined
client.gateway.acquire(key)  # wrong: attr-defined
client.gateway.named("gpt-5").acquire(limits.Org("7"))  # wrong: arg-type
client.api.named("gpt-5")  # wrong: attr-defined
