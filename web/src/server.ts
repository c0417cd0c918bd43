// SPDX-License-Identifier: Apache-2.0

// What the page asks its server, with the session that the browser was given.

import { signal } from "@preact/signals";

const kept = "rollouts-session";

// ended says why the server answers no more; empty while it does.
export const ended = signal("");

// Refused is an answer that says why there is none.
export class Refused extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

// login exchanges the key in the address for a session.
export async function login(): Promise<void> {
  const key = location.hash.startsWith("#k=") ? location.hash.slice(3) : "";
  if (!key) return;
  history.replaceState(null, "", location.pathname + location.search);
  const response = await fetch("/api/v1/session", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ key }),
  });
  const answer = await response.json();
  if (response.ok) localStorage.setItem(kept, answer.session);
  else if (!localStorage.getItem(kept)) throw new Refused(response.status, answer.message);
}

// shared is true if this is the page of a cluster, to which users log in with a token. The
// browser sends its session, which no script can read.
export const shared = location.protocol === "https:";

// whatToDo is shown if an answer that would say it was not read: a page that goes ends its requests.
const whatToDo = shared ? "log in with a token for the API server" : "open the address that the terminal shows";

// post sends JSON, and returns why it was refused; empty if it was not.
async function post(path: string, body: object): Promise<string> {
  const response = await fetch("/api/v1/" + path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await response.json().catch(() => ({}));
  return response.ok ? "" : (answer.message ?? response.statusText);
}

// present logs in with a token, and returns why it was refused; empty if it was not.
export const present = (token: string): Promise<string> => post("session", { token });

// leave logs out, in all tabs.
export async function leave(): Promise<void> {
  await post("logout", {});
  location.reload();
}

// ask sends a request with the session.
export async function ask(path: string, signal?: AbortSignal, headers?: Record<string, string>): Promise<Response> {
  const response = await fetch("/api/v1/" + path, {
    headers: { "Rollouts-Session": localStorage.getItem(kept) ?? "", ...headers },
    signal: signal ?? null,
    cache: "no-store",
  });
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  if (response.status === 401) ended.value = said.message ?? (ended.value || whatToDo);
  throw new Refused(response.status, said.message ?? response.statusText);
}

// read returns an answer.
export async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await ask(path, signal)).json();
}

// request asks for something. Each answer is one, also a refusal; no answer
// is an error.
export async function request(path: string, body: unknown, headers?: Record<string, string>): Promise<{ code: number; answer: any }> {
  const response = await fetch("/api/v1/" + path, {
    method: "POST",
    headers: { "Rollouts-Session": localStorage.getItem(kept) ?? "", "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
    cache: "no-store",
  });
  const answer = await response.json();
  if (response.status === 401) ended.value = answer.message;
  return { code: response.status, answer };
}
