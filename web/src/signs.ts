// SPDX-License-Identifier: Apache-2.0

// How a Rollout is doing, at a glance: a sign and a word, and what somebody must look at first.

import type { Row, State } from "./answers";

export interface Look {
  id: string;
  sign: string;
  word: string;
  // label is the word of a filter.
  label: string;
}

// looks are in the order in which they need attention.
export const looks: Look[] = [
  { id: "failed", sign: "✗", word: "Failed", label: "failed" },
  { id: "stalled", sign: "⚠", word: "Stalled", label: "stalled" },
  { id: "back", sign: "↩", word: "Rolled back", label: "rolled back" },
  { id: "person", sign: "☝", word: "Held", label: "wait for a user" },
  { id: "waiting", sign: "⚠", word: "Waiting", label: "wait for something missing" },
  { id: "time", sign: "◎", word: "Held", label: "wait for time" },
  { id: "moving", sign: "◍", word: "Moving", label: "moving" },
  { id: "suspended", sign: "⏸", word: "Suspended", label: "suspended" },
  { id: "well", sign: "✔", word: "Up to date", label: "up to date" },
];

const byId = new Map(looks.map((l) => [l.id, l]));

const byKind: Record<string, string> = {
  Failed: "failed",
  Stalled: "stalled",
  Waiting: "waiting",
  Unseen: "waiting",
  Deploying: "moving",
  Baking: "moving",
  Goes: "moving",
  Suspended: "suspended",
  UpToDate: "well",
};

function idOf(state: State, rolledBack?: boolean, until?: string): string {
  const id = state.kind === "Held" ? (until ? "time" : "person") : (byKind[state.kind] ?? "waiting");
  return rolledBack && ["person", "time", "well"].includes(id) ? "back" : id;
}

// lookOf returns how a row looks. Words that say more than the group replace its own.
export function lookOf(row: Row): Look {
  return lookAt(row.state, row.rolledBack, row.until);
}

export function lookAt(state: State, rolledBack?: boolean, until?: string): Look {
  const look = byId.get(idOf(state, rolledBack, until))!;
  return look.id === "moving" ? { ...look, word: state.kind === "Goes" ? "Goes out" : state.kind } : look;
}

export const rank = new Map(looks.map((l, i) => [l.id, i]));

// ofNodes are the signs of what a release reaches.
export const ofNodes: Record<string, { sign: string; word: string; id: string }> = {
  Well: { sign: "✔", word: "well", id: "well" },
  Waits: { sign: "◎", word: "waits", id: "time" },
  Failed: { sign: "✗", word: "not well", id: "failed" },
  Suspended: { sign: "⏸", word: "suspended", id: "suspended" },
  Unknown: { sign: "?", word: "not known", id: "waiting" },
};
