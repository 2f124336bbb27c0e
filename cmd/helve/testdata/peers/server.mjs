// An MCP server of the official TypeScript library, of one version of it:
//   node server.mjs PACKAGE NAME stdio|http|sse
// Over HTTP it prints its address. The state that its tools speak of is that of
// the process; each is kept by the key that a call names.
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";

const [pkg, name, transport] = process.argv.slice(2);
const newest = pkg === "@modelcontextprotocol/server";
const lib = newest ? await import(pkg) : await import(`${pkg}/server/index.js`);
const types = newest ? {} : await import(`${pkg}/types.js`);
const asks = newest || "ElicitRequestSchema" in types;

const waiting = new Map(); // of events that are awaited, and those that were
const event = (id) => {
  if (!waiting.has(id)) waiting.set(id, Promise.withResolvers?.() ?? deferred());
  return waiting.get(id);
};
function deferred() {
  const d = {};
  d.promise = new Promise((resolve) => (d.resolve = resolve));
  return d;
}

const anything = { type: "object" };
const tools = ["get_rich", "get_steps", "get_late", "get_begun", "get_cancelled", "get_failed", "get_name", "get_last"].map((n) => ({
  name: n,
  description: `Do ${n}.`,
  inputSchema: anything,
}));
tools[0].outputSchema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };

const text = (t) => ({ content: [{ type: "text", text: t }] });

// What every version knows, and what only later ones do.
const rich = {
  content: [
    { type: "text", text: `rich of ${name}` },
    { type: "image", data: "AAH/", mimeType: "image/png" },
    { type: "resource", resource: { uri: `${name}://inside`, mimeType: "text/plain", text: "inside" } },
    { type: "audio", data: "d2F2", mimeType: "audio/wav" },
    { type: "resource_link", uri: `${name}://own`, name: "own", mimeType: "text/plain" },
  ],
  structuredContent: { n: 7 },
};

async function callTool(request, extra, notify) {
  const { name: tool, arguments: args = {}, _meta } = request.params;
  switch (tool) {
    case "get_rich":
      return rich;
    case "get_steps":
      for (let i = 1; i <= 3; i++) {
        await notify({ method: "notifications/progress", params: { progressToken: _meta?.progressToken, progress: i, total: 3 } });
      }
      return text("stepped");
    case "get_late": {
      const { signal } = newest ? extra.mcpReq : extra;
      const cancelled = () => event(`cancelled ${args.key}`).resolve();
      if (signal.aborted) cancelled();
      signal.addEventListener("abort", cancelled);
      event(`begun ${args.key}`).resolve();
      await event(`cancelled ${args.key}`).promise;
      return text("too late");
    }
    case "get_begun":
      await event(`begun ${args.key}`).promise;
      return text("begun");
    case "get_cancelled":
      await event(`cancelled ${args.key}`).promise;
      return text("cancelled");
    case "get_failed":
      return { ...text("it failed"), isError: true };
    case "get_name":
      return askName(extra);
    default:
      return text(tool);
  }
}

async function askName(extra) {
  const params = {
    message: "Who?",
    requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
  };
  if (!asks) return text("cannot ask");
  if (!newest) {
    const a = await extra.sendRequest({ method: "elicitation/create", params }, types.ElicitResultSchema);
    return text(`${a.action} ${a.content?.name}`);
  }
  const a = extra.mcpReq.inputResponses?.who;
  if (!a) return lib.inputRequired({ inputRequests: { who: lib.inputRequired.elicit(params) }, requestState: "asked" });
  return text(`${a.action} ${a.content?.name}`);
}

function listTools(request) {
  const from = Number(request.params?.cursor ?? 0);
  const page = { tools: tools.slice(from, from + 3) };
  if (from + 3 < tools.length) page.nextCursor = String(from + 3);
  return page;
}

function build() {
  const s = new lib.Server({ name, version: "1" }, { capabilities: { tools: {}, resources: {}, prompts: {} } });
  const on = (method, schema, fn) => s.setRequestHandler(newest ? method : types[schema], fn);
  on("tools/list", "ListToolsRequestSchema", listTools);
  on("tools/call", "CallToolRequestSchema", (request, extra) =>
    callTool(request, extra, extra.mcpReq?.notify ?? extra.sendNotification ?? ((n) => s.notification(n))));
  const own = { uri: `${name}://own`, name: "own", mimeType: "text/plain" };
  on("resources/list", "ListResourcesRequestSchema", () => ({ resources: [own] }));
  on("resources/templates/list", "ListResourceTemplatesRequestSchema", () => ({ resourceTemplates: [] }));
  on("resources/read", "ReadResourceRequestSchema", (request) =>
    ({ contents: [{ uri: request.params.uri, mimeType: "text/plain", text: `own of ${name}` }] }));
  on("prompts/list", "ListPromptsRequestSchema", () =>
    ({ prompts: [{ name: "greet", arguments: [{ name: "who", required: true }] }] }));
  on("prompts/get", "GetPromptRequestSchema", (request) =>
    ({ messages: [{ role: "user", content: { type: "text", text: `${name} greets ${request.params.arguments.who}` } }] }));
  return s;
}

async function body(req) {
  const parts = [];
  for await (const part of req) parts.push(part);
  return Buffer.concat(parts);
}

// fetched serves what speaks in terms of fetch.
async function fetched(handler, req, res) {
  const left = new AbortController();
  res.on("close", () => left.abort());
  const init = { method: req.method, headers: req.headers, signal: left.signal };
  if (req.method === "POST") init.body = await body(req);
  const answer = await handler.fetch(new Request(`http://${req.headers.host}${req.url}`, init));
  res.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body) Readable.fromWeb(answer.body).on("error", () => res.destroy()).pipe(res);
  else res.end();
}

async function withSessions() {
  const { StreamableHTTPServerTransport } = await import(`${pkg}/server/streamableHttp.js`);
  const sessions = new Map();
  return async (req, res) => {
    let t = sessions.get(req.headers["mcp-session-id"]);
    if (!t) {
      t = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: (id) => sessions.set(id, t) });
      await build().connect(t);
    }
    await t.handleRequest(req, res);
  };
}

async function withEvents() {
  const { SSEServerTransport } = await import(`${pkg}/server/sse.js`);
  const sessions = new Map();
  return async (req, res) => {
    if (req.method === "GET") {
      const t = new SSEServerTransport("/mcp", res);
      sessions.set(t.sessionId, t);
      await build().connect(t);
      return;
    }
    const t = sessions.get(new URL(req.url, "http://x").searchParams.get("sessionId"));
    if (t) await t.handlePostMessage(req, res);
    else res.writeHead(405).end();
  };
}

async function handlerOf() {
  if (transport === "sse") return withEvents();
  if (!newest) return withSessions();
  const handler = lib.createMcpHandler(build, { legacy: "reject" });
  return (req, res) => fetched(handler, req, res);
}

if (transport === "stdio") {
  if (newest) (await import(`${pkg}/stdio`)).serveStdio(build, { legacy: "reject" });
  else await build().connect(new (await import(`${pkg}/server/stdio.js`)).StdioServerTransport());
} else {
  const handler = await handlerOf();
  const web = createServer((req, res) => handler(req, res).catch((err) => {
    console.error(err);
    res.destroy();
  }));
  web.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${web.address().port}/mcp`));
}
