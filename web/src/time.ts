// SPDX-License-Identifier: Apache-2.0

// Times as they are shown. The clock is that of the server: the one of the browser may be
// wrong, and this one goes on by the time since the last answer.

import { signal } from "@preact/signals";

let server = Date.now();
let heard = performance.now();

// now is the time of the server, at each full second.
export const now = signal(server);

// hear takes the time of the server from an answer.
export function hear(time: string): void {
  server = Date.parse(time);
  heard = performance.now();
  now.value = server;
}

export function tick(): void {
  now.value = server + performance.now() - heard;
}

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

const units: [number, string][] = [
  [day, "d"],
  [hour, "h"],
  [minute, "m"],
  [second, "s"],
];

// span returns a length of time in its two largest units.
export function span(ms: number): string {
  const total = Math.max(0, Math.round(ms / second) * second);
  const at = units.findIndex(([size]) => total >= size);
  if (at < 0) return "0s";
  const [size, name] = units[at]!;
  const [smaller, rest] = units[at + 1] ?? [size, ""];
  const more = Math.floor((total % size) / smaller);
  return Math.floor(total / size) + name + (more ? more + rest : "");
}

// age returns how long ago a time was.
export function age(time: string | undefined, at: number): string {
  return time ? span(at - Date.parse(time)) : "";
}

const moments = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "2-digit",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  timeZoneName: "short",
});

// moment returns a time in the zone of the browser.
export function moment(time: string): string {
  return moments.format(new Date(time)).replace(",", "");
}

// until says when time alone changes something.
export function until(time: string | undefined, at: number): string {
  if (!time) return "";
  const left = Date.parse(time) - at;
  return left > 0 ? `until ${moment(time)}, in ${span(left)}` : "any moment now";
}
