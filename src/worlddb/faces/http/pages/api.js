// The REST calls. The token lives in this module's memory alone: not in storage, not in the address.
let token = "";
let access = { role: "read", admin: false };

export class CallError extends Error {
  constructor(status, type, message) {
    super(message);
    this.status = status;
    this.type = type;
  }
}

export function signIn(given) {
  token = given;
}

export const isSignedIn = () => token !== "";

/** Keep what the server says that the token of this page may do. */
export function setAccess(told) {
  access = told;
}

const ROLES = ["read", "write", "curate", "administer"]; // Each may do what those before it may.

export const isAtLeast = (role) => ROLES.indexOf(access.role) >= ROLES.indexOf(role);
export const isAdmin = () => access.admin;

/** Call the server; `given` goes into the address of a GET and into the body of a POST. */
export async function call(method, path, given = {}, signal = undefined) {
  const known = Object.entries(given).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  let address = path;
  let body;
  if (method === "GET") {
    const query = new URLSearchParams();
    for (const [name, value] of known) for (const one of [].concat(value)) query.append(name, one);
    if (known.length) address += `?${query}`;
  } else {
    headers["content-type"] = "application/json";
    body = JSON.stringify(Object.fromEntries(known));
  }
  let answer;
  try {
    answer = await fetch(address, { method, headers, body, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new CallError(0, "network", "The server does not answer. Is it still running?");
  }
  const text = await answer.text();
  const isJson = (answer.headers.get("content-type") || "").includes("json");
  const data = isJson && text ? JSON.parse(text) : text;
  if (answer.ok) return data;
  const problem = (data && data.error) || {};
  throw new CallError(
    answer.status,
    problem.type || "error",
    problem.message || `${answer.status} ${answer.statusText}`,
  );
}

export const get = (path, given, signal) => call("GET", path, given, signal);
export const post = (path, given, signal) => call("POST", path, given, signal);

/** Ask, or get the text of a prompt, as somebody who looks: nothing becomes more often recalled by it. */
export const recall = (given, signal) => post("/v1/recall", { ...given, counted: false }, signal);
export const contextFor = (given, signal) => post("/v1/context", { ...given, counted: false }, signal);

/** Return the scope of a text such as "user:ada" as arguments of a call. */
export function scopeOf(name) {
  const at = name ? name.indexOf(":") : -1;
  return at < 0 ? {} : { [`${name.slice(0, at)}_id`]: name.slice(at + 1) };
}

/** Return the two clocks of an address as the first steps of a query. */
export function clockSteps({ as_of: valid, known_at: known }) {
  return valid || known ? [{ op: "as_of", ...(valid ? { valid } : {}), ...(known ? { known } : {}) }] : [];
}

/** Call the server and read its answer line by line: `onLine` gets each, the last one is returned. */
export async function lines(path, onLine, signal) {
  const answer = await fetch(path, {
    headers: { accept: "application/x-ndjson", ...(token ? { authorization: `Bearer ${token}` } : {}) },
    signal,
  });
  if (!answer.ok)
    throw new CallError(answer.status, "error", ((await answer.json()).error || {}).message || answer.statusText);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let [held, last] = ["", null];
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    const found = (held + next.value).split("\n");
    held = found.pop();
    for (const line of found) {
      last = JSON.parse(line);
      onLine(last);
    }
  }
  if (last && last.error) throw new CallError(500, last.error.type, last.error.message);
  return last;
}

/** Return the two clocks of an address as arguments of a call. */
export function clocksOf(params) {
  return { as_of: params.as_of, known_at: params.known_at };
}
