// A worker that shares the limits of the Go services. limits.ts is generated from the server's /openapi.json.
import createClient from "openapi-fetch";

import type { paths } from "./limits.js";

const client = createClient<paths>({ baseUrl: process.env.SLUICE_URL ?? "http://127.0.0.1:8080" });

async function complete(key: string, org: string, prompt: string): Promise<string> {
  const { data, error } = await client.POST("/v1/model/acquire", {
    body: { entity: { key, org }, usage: { input: prompt.length, output: 2000, call: 1 }, wait: "5s" },
  });
  if (error) {
    throw new Error(error.detail); // the limit that denies, and when to come back
  }
  const lease = { params: { path: { lease: data.lease } } };
  try {
    const text = model(prompt);
    await client.POST("/v1/leases/{lease}/settle", {
      ...lease,
      body: { usage: { input: prompt.length, output: text.length, call: 1 } },
    });
    return text;
  } catch (failed) {
    await client.POST("/v1/leases/{lease}/release", lease);
    throw failed;
  }
}

// model stands in for a call of a model.
function model(prompt: string): string {
  return [...prompt].reverse().join("");
}

console.log(await complete("1", "7", "Why is the sky blue?"));
const { data } = await client.POST("/v1/model/peek", { body: { entity: { key: "1", org: "7" } } });
console.log(JSON.stringify(data?.available));
