"""A worker that shares the limits of the Go services. limits_client.py is generated from limits.yaml."""

import limits_client as limits

client = limits.Client("http://127.0.0.1:8080")


def complete(key: str, org: str, prompt: str) -> str:
    who = limits.Key(key, org=org)
    estimate = limits.ModelUsage(input=len(prompt) // 3, output=2_000, call=1)
    # It raises Denied or Unavailable. The end of the block keeps the lease, and an exception releases it.
    with client.model.acquire(who, estimate, wait=5.0) as lease:
        text, used = model(prompt)
        lease.settle(limits.ModelUsage(input=len(prompt) // 3, output=used, call=1))
    return text


def model(prompt: str) -> tuple[str, int]:
    """Stand in for a call of a model: the text, and the tokens that it took."""
    return prompt[::-1], len(prompt) // 3


if __name__ == "__main__":
    print(complete("1", "7", "Why is the sky blue?"))
