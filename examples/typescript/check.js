// Generates limits.ts from a real server, and holds that worker.ts type-checks and runs, and that each marked line of
// wrong.ts is an error. SLUICE_SERVE is the path of the server's program.
import { execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import test from "node:test";
import assert from "node:assert/strict";

// run runs a program of node_modules or of the machine, and returns its exit code and what it has printed.
function run(program, args, env = {}) {
  return new Promise((done) => {
    execFile(program, args, { env: { ...process.env, ...env } }, (error, stdout) =>
      done({ code: error?.code ?? 0, stdout }),
    );
  });
}

const tsc = (...args) => run("node_modules/.bin/tsc", ["--pretty", "false", ...args]);

// serve starts a server that ends with the test, and returns its URL.
async function serve(t) {
  const server = spawn(process.env.SLUICE_SERVE ?? "sluice-serve", ["--http", "127.0.0.1:0", "--drain", "0s"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  t.after(() => server.kill());
  for await (const line of createInterface({ input: server.stderr })) {
    const fields = JSON.parse(line);
    if (fields.msg === "serving") {
      server.stderr.resume();
      return `http://${fields.http}`;
    }
  }
  throw new Error("the server does not start");
}

test("the generated types hold what limits.yaml says", async (t) => {
  const url = await serve(t);
  const generated = await run("node_modules/.bin/openapi-typescript", [`${url}/openapi.json`, "--output", "limits.ts"]);
  assert.equal(generated.code, 0, generated.stdout);

  // without files, tsc would read all of the folder
  const options = ["--project", "tsconfig.json"];
  const all = await tsc(...options);
  const got = all.stdout
    .split("\n")
    .map((line) => /^(\w+\.ts)\((\d+),/.exec(line))
    .filter((found) => found)
    .map((found) => `${found[1]}:${found[2]}`);
  const want = readFileSync("wrong.ts", "utf8")
    .split("\n")
    .flatMap((line, i) => (line.endsWith("// wrong") ? [`wrong.ts:${i + 1}`] : []));
  assert.equal(want.length, 9);
  assert.deepEqual([...new Set(got)], want, all.stdout);

  const ran = await run("node", ["dist/worker.js"], { SLUICE_URL: url });
  assert.match(ran.stdout, /^\?eulb yks eht si yhW\n\{"tpm":\d+,"month":"4\.98975"\}\n$/);
});
