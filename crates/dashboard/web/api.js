// Requests to the program.

/** Requests are aborted after this time, in milliseconds. */
const PATIENCE_MS = 35_000;

/** An answer with an error; `details` is the program's message. */
export class Refused extends Error {
  constructor(status, details) {
    super(details?.error ?? `the answer has status ${status}`);
    this.status = status;
    this.details = details ?? {};
  }
}

async function ask(path, options, signal) {
  const signals = [AbortSignal.timeout(PATIENCE_MS), signal].filter(Boolean);
  const response = await fetch(path, { ...options, signal: AbortSignal.any(signals), cache: "no-store" });
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new Refused(response.status, body);
  return body;
}

/** The value at an address; empty parameters are omitted. */
export function get(path, parameters = {}, signal) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== "" && one !== null && one !== undefined && one !== false) query.append(name, one);
    }
  }
  const text = query.toString();
  return ask(text ? `${path}?${text}` : path, {}, signal);
}

/** The token that requests with changes must carry, and whether servers may be changed. */
let token = "";
let permitted = false;

export function setRights(now) {
  token = now.token;
  permitted = now.permits_actions;
}

export const mayAct = () => permitted;

/** Sends a request that changes something. */
export function act(body) {
  return post("/api/actions", JSON.stringify(body), "application/json");
}

/** Sends a body. The token field prevents other sites from doing so. */
export function post(path, body, type) {
  const headers = { "content-type": type, "x-spangate-token": token };
  return ask(path, { method: "POST", headers, body });
}
