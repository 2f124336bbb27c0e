// An MCP client of the official TypeScript library, of one version of it:
//   node client.mjs PACKAGE KEY SERVERS http URL
//   node client.mjs PACKAGE KEY SERVERS stdio COMMAND ARG...
// It uses each of the SERVERS (separated by commas) that are behind a gateway,
// and prints what it got as JSON.
//
// Progress is taken from the wire: before its answer all of it must have come.
// Of what comes in one piece with the answer these clients forget some.
const [pkg, key, servers, transport, ...rest] = process.argv.slice(2);
const newest = pkg === "@modelcontextprotocol/client";
const lib = newest ? await import(pkg) : await import(`${pkg}/client/index.js`);
const types = newest ? {} : await import(`${pkg}/types.js`);
const asked = newest || "ElicitRequestSchema" in types;

const arrived = []; // all messages

async function connect() {
  const options = { capabilities: asked ? { elicitation: {} } : {} };
  if (newest) options.versionNegotiation = { mode: { pin: "2026-07-28" } };
  const client = new lib.Client({ name: `peer ${pkg}`, version: "1" }, options);
  if (asked) {
    client.setRequestHandler(newest ? "elicitation/create" : types.ElicitRequestSchema, () =>
      ({ action: "accept", content: { name: "Ann" } }));
  }
  const wire = await open();
  let take;
  let taking = false; // some versions call what they found here, too
  const overhear = (message, ...more) => {
    if (taking) return;
    taking = true;
    arrived.push(message);
    take?.(message, ...more);
    taking = false;
  };
  Object.defineProperty(wire, "onmessage", { get: () => overhear, set: (fn) => (take = fn) });
  await client.connect(wire);
  return client;
}

async function open() {
  if (transport === "http") {
    const { StreamableHTTPClientTransport } = newest ? lib : await import(`${pkg}/client/streamableHttp.js`);
    return new StreamableHTTPClientTransport(new URL(rest[0]));
  }
  const { StdioClientTransport } = await import(newest ? `${pkg}/stdio` : `${pkg}/client/stdio.js`);
  return new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env });
}

const client = await connect();
const revision = newest ? client.getNegotiatedProtocolVersion() : arrived.find((m) => m.result?.protocolVersion).result.protocolVersion;
const call = (name, args = {}, options) => {
  const params = { name, arguments: args };
  return newest ? client.callTool(params, options) : client.callTool(params, undefined, options);
};

async function everyPage(list, key) {
  const all = [];
  for (let cursor; ; ) {
    const page = await list(cursor === undefined ? {} : { cursor });
    all.push(...page[key]);
    cursor = page.nextCursor;
    if (cursor === undefined) return all;
  }
}

// What a call came to; one that a server or the library refuses is no reason
// to leave out the rest.
const outcome = (fn) => fn().catch((err) => `error: ${err.message}`);

async function cancels(tool) {
  const stop = new AbortController();
  const mine = { key: `${key} ${tool("get_late")}` };
  const late = outcome(() => call(tool("get_late"), mine, { signal: stop.signal }));
  await call(tool("get_begun"), mine);
  stop.abort("enough");
  const answer = await late;
  const seen = await call(tool("get_cancelled"), mine);
  return [typeof answer === "string" ? "given up" : answer, seen.content[0].text];
}

// steps calls a tool that reports progress, and returns what had come when its
// answer came.
async function steps(tool) {
  arrived.length = 0;
  const answer = await call(tool, {}, { onprogress: () => {} });
  const to = arrived.findIndex((m) => m.result?.content?.[0]?.text === "stepped");
  const before = arrived.slice(0, to).filter((m) => m.method === "notifications/progress");
  return { progress: before.map((m) => [m.params.progress, m.params.total]), text: answer.content[0].text };
}

async function use(server) {
  const tool = (name) => `mcp__${server}__${name}`;
  const rich = await outcome(() => call(tool("get_rich")));
  return {
    rich: rich.content ?? rich,
    structured: rich.structuredContent,
    steps: await outcome(() => steps(tool("get_steps"))),
    cancels: await outcome(() => cancels(tool)),
    failed: await outcome(() => call(tool("get_failed"))),
    name: await outcome(async () => (await call(tool("get_name"))).content),
    resource: await outcome(async () => (await client.readResource({ uri: `${server}://own` })).contents),
    prompt: await outcome(async () => (await client.getPrompt({ name: `${server}__greet`, arguments: { who: "W" } })).messages),
  };
}

const report = {
  revision,
  tools: (await everyPage((p) => client.listTools(p), "tools")).map((t) => t.name),
  resources: (await everyPage((p) => client.listResources(p), "resources")).map((r) => r.uri),
  prompts: (await everyPage((p) => client.listPrompts(p), "prompts")).map((p) => p.name),
  servers: {},
};
for (const server of servers.split(",")) report.servers[server] = await use(server);
console.log(JSON.stringify(report));
await client.close();
process.exit(0);
