// SPDX-License-Identifier: Apache-2.0

// The answers of the server, as far as the page shows them. They are those of the command
// line: see internal/cli/web and internal/cli.

export interface State {
  kind: string;
  cause: string;
}

export interface Row {
  namespace: string;
  name: string;
  version?: string;
  since?: string;
  state: State;
  next?: string;
  until?: string;
  rolledBack?: boolean;
  pinned?: string;
  request?: "waits" | "refused";
}

export interface Fleet {
  rev: string;
  now: string;
  complete: boolean;
  away: boolean;
  rows: Row[];
}

export interface Frame {
  now: string;
  complete: boolean;
  away: boolean;
  set?: Row[];
  gone?: { Namespace: string; Name: string }[];
}

export interface Me {
  user?: string;
  cluster: string;
  namespace?: string;
  version: string;
  command: string;
  pipeline: string;
}

export interface Hold {
  reason: string;
  message: string;
  until?: string;
  details?: string[];
}

export interface Command {
  promotes: boolean;
  left?: string[];
}

export interface Candidate {
  version: string;
  digest?: string;
  holds?: Hold[];
  remedies?: Command[];
}

export interface Entry {
  id?: number;
  version: { tag: string; digest?: string };
  timestamp: string;
  bakeStatus?: string;
  bakeStatusMessage?: string;
  bakeStartTime?: string;
  bakeEndTime?: string;
  message?: string;
  triggeredBy?: { kind?: string; name?: string };
}

export interface Node {
  object?: { kind: string; namespace?: string; name: string };
  name?: string;
  sign: string;
  text?: string;
  message?: string;
  until?: string;
  children?: Node[];
}

// Action is a request of the command line.
export interface Action {
  verb: string;
  name?: string;
  args?: string[];
}

export interface Offer extends Action {
  title: string;
  lacks?: string;
}

export interface Prediction {
  effect: string[];
  cautions?: string[];
  notes?: string[];
  promotes?: boolean;
  reason: "none" | "optional" | "required";
  command: string;
  seen: string;
}

export interface Pending extends Partial<Action> {
  text?: string;
  by?: string;
  since?: string;
  refused?: string;
}

export interface RolloutPage {
  explanation: {
    namespace: string;
    name: string;
    at: string;
    current?: Entry;
    state: State;
    remedies?: Command[];
    problems?: { reason: string; message: string }[];
    now: { action: string; version?: string; message?: string };
    rollback?: { done: boolean; reason: string; message: string; until?: string };
    candidates: Candidate[];
    changes?: string;
  };
  tree: { root: Node };
  history: Entry[];
  forecast?: string;
  commands: string[][];
  // offers are absent if the page only shows.
  offers?: Offer[][];
  requests?: Pending[];
  explain: string;
}

export interface Environment {
  environment: string;
  namespace: string;
  rollout: string;
  cluster?: string;
  upstreams?: { environment: string; type: string; cluster?: string }[];
  runs?: { version: string; digest?: string; state: string; since: string; unhealthy?: string };
  suspended?: boolean;
  state?: State;
  behind?: number;
  proven?: string;
  next?: string;
  holds?: Hold[];
  problems?: string[];
}

export interface Pipelines {
  items: { application: string; environments: Environment[] }[];
  problems?: string[];
}
