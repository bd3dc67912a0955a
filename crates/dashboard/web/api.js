// Requests to the program.

/** What is given up after so long, milliseconds. */
const PATIENCE_MS = 35_000;

/** An answer that is not the one asked for; `details` is what the program said. */
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

/** The value at an address; parameters that are empty are left out. */
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

/** What requests that are no reads must carry, and whether servers may be changed. */
let token = "";
let permitted = false;

export function setRights(now) {
  token = now.token;
  permitted = now.permits_actions;
}

export const mayAct = () => permitted;

/** Changes something. */
export function act(body) {
  return post("/api/actions", JSON.stringify(body), "application/json");
}

/** Sends a body; the field of the token keeps other sites from doing so. */
export function post(path, body, type) {
  const headers = { "content-type": type, "x-spangate-token": token };
  return ask(path, { method: "POST", headers, body });
}
