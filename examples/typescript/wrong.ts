// Calls that do not type-check: check.js holds that each is an error.
import createClient from "openapi-fetch";

import type { paths } from "./limits.js";

const client = createClient<paths>({ baseUrl: "http://127.0.0.1:8080" });

await client.POST("/v1/apis/acquire", { body: { entity: { key: "1" } } }); // wrong
await client.POST("/v1/api/acquire", { body: { entity: { user: "1" } } }); // wrong
await client.POST("/v1/api/acquire", { body: { entity: { key: "1" }, cost: { tmp: 1 } } }); // wrong
await client.POST("/v1/api/acquire", { body: { entity: { key: "1" }, cost: { tpm: "1" } } }); // wrong
await client.POST("/v1/api/acquire", { body: { cost: { tpm: 1 } } }); // wrong
await client.POST("/v1/model/acquire", { body: { entity: { key: "1" }, cost: { month: 0.25 } } }); // wrong
await client.POST("/v1/model/acquire", { body: { entity: { key: "1" }, usage: { inptu: 1 } } }); // wrong
await client.POST("/v1/jobs/acquire", { body: { entity: { key: "1" } } }); // wrong
await client.POST("/v1/leases/{lease}/keep", { params: { path: { lease: 1 } } }); // wrong
