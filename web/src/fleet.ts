// SPDX-License-Identifier: Apache-2.0

// The rows of all Rollouts, and their changes.

import { computed, signal } from "@preact/signals";
import type { Fleet, Frame, Row } from "./answers";
import { ask, ended, read } from "./server";
import { hear } from "./time";

// link is how the page hears of changes.
export type Link = "reading" | "live" | "reconnecting" | "away";

export const link = signal<Link>("reading");
export const complete = signal(false);
// problem says why nothing could be read; empty if it could.
export const problem = signal("");

const table = new Map<string, Row>();
const changed = signal(0);
let revision = "";

// rows are all Rollouts.
export const rows = computed(() => (changed.value, [...table.values()]));

const keyOf = (namespace: string, name: string) => namespace + "/" + name;

export function rowOf(namespace: string, name: string): Row | undefined {
  changed.value;
  return table.get(keyOf(namespace, name));
}

export function takeAll(fleet: Fleet): void {
  table.clear();
  for (const row of fleet.rows) table.set(keyOf(row.namespace, row.name), row);
  revision = fleet.rev;
  take({ now: fleet.now, complete: fleet.complete, away: fleet.away }, fleet.rev);
}

export function take(frame: Frame, id: string): void {
  for (const row of frame.set ?? []) table.set(keyOf(row.namespace, row.name), row);
  for (const gone of frame.gone ?? []) table.delete(keyOf(gone.Namespace, gone.Name));
  revision = id;
  complete.value = frame.complete;
  link.value = frame.away ? "away" : "live";
  hear(frame.now);
  changed.value++;
}

// An event of a stream.
export interface Event {
  id: string;
  event: string;
  data: string;
}

// parser returns a function that takes the text of a stream, however it is cut, and returns
// the events that are complete.
export function parser(): (text: string) => Event[] {
  let rest = "";
  return (text) => {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop()!;
    return blocks.map((block) => {
      const event: Event = { id: "", event: "", data: "" };
      for (const line of block.split("\n")) {
        const [name, value] = [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trimStart()];
        if (name === "id" || name === "event" || name === "data") event[name] += value;
      }
      return event;
    });
  };
}

// silence is how long a stream may be quiet: twice the time between two beats.
const silence = 30_000;

// follow reads the stream until it ends. It returns false if all must be read again.
async function follow(stop: AbortSignal): Promise<boolean> {
  const own = new AbortController();
  const end = () => own.abort();
  stop.addEventListener("abort", end);
  let quiet = setTimeout(end, silence);
  try {
    const response = await ask("fleet/stream", own.signal, { "Last-Event-ID": revision });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    const parse = parser();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return true;
      clearTimeout(quiet);
      quiet = setTimeout(end, silence);
      for (const event of parse(value)) {
        if (event.event === "reset") return false;
        if (event.event === "rows") take(JSON.parse(event.data), event.id);
      }
    }
  } finally {
    clearTimeout(quiet);
    stop.removeEventListener("abort", end);
    own.abort();
  }
}

const pauses = [500, 1000, 2000, 5000];

function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    stop.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });
}

// watch keeps the rows up to date while the tab is visible.
export async function watch(stop: AbortSignal): Promise<void> {
  for (let failures = 0; !stop.aborted && !ended.value; ) {
    try {
      if (!revision) takeAll(await read<Fleet>("fleet", stop));
      problem.value = "";
      if (!(await follow(stop))) revision = "";
      failures = 0;
    } catch (error) {
      if (stop.aborted) return;
      problem.value = String((error as Error).message ?? error);
      failures++;
    }
    if (stop.aborted || ended.value) return;
    if (link.value !== "reading") link.value = "reconnecting";
    await pause(pauses[Math.min(failures, pauses.length - 1)]!, stop);
  }
}

// watchWhileVisible holds a connection for a tab that somebody sees, and none for others.
export function watchWhileVisible(): void {
  let stop: AbortController | undefined;
  const change = () => {
    stop?.abort();
    stop = undefined;
    if (document.visibilityState !== "visible") return;
    stop = new AbortController();
    void watch(stop.signal);
  };
  document.addEventListener("visibilitychange", change);
  change();
}
