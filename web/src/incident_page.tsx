// SPDX-License-Identifier: Apache-2.0

// What went wrong with releases in the last day, over all namespaces: a lane for each content.

import { useEffect, useState } from "preact/hooks";
import { rows } from "./fleet";
import { Ago, Command, Problems, Sign } from "./parts";
import { addressOf } from "./router";
import { read } from "./server";
import { clean, tag } from "./text";
import { moment, now, until } from "./time";

interface Event {
  kind: string;
  object: string;
  namespace?: string;
  name: string;
  from: string;
  to?: string;
  until?: string;
  version?: string;
  why?: string;
  by?: string;
}

interface Lane {
  versions?: string[];
  digest?: string;
  events: Event[];
  omitted?: number;
  lasts?: boolean;
}

interface Incidents {
  from: string;
  to: string;
  lanes: Lane[];
  omitted?: number;
  problems?: string[];
  command: string;
}

const kinds: Record<string, { id: string; sign: string; word: string }> = {
  Failed: { id: "failed", sign: "✗", word: "Failed" },
  WentBack: { id: "back", sign: "↩", word: "Rolled back" },
  Quarantined: { id: "waiting", sign: "⊘", word: "Quarantined" },
};

const lookOf = (e: Event) => kinds[e.kind] ?? { id: "waiting", sign: "?", word: clean(e.kind) };

// calm is the shortest time between two reads, and atRest is the longest: quarantines change
// without a row.
const calm = 5_000;
const atRest = 60_000;

export function IncidentPage() {
  const [answer, setAnswer] = useState<{ all?: Incidents; failed?: string }>({});
  const changed = rows.value;
  useEffect(() => {
    document.title = "Incidents · Rollouts";
    const stop = new AbortController();
    const look = () =>
      read<Incidents>("incidents", stop.signal).then(
        (all) => setAnswer({ all }),
        (error: Error) => stop.signal.aborted || setAnswer((was) => ({ ...was, failed: error.message })),
      );
    const timer = setTimeout(look, answer.all ? calm : 0);
    const again = setInterval(() => document.visibilityState === "visible" && void look(), atRest);
    return () => (clearTimeout(timer), clearInterval(again), stop.abort());
  }, [changed]);
  const { all, failed } = answer;
  return (
    <article>
      <h1>Incidents of the last 24 hours</h1>
      <Problems of={[failed, ...(all?.problems ?? [])]} />
      {all ? all.lanes.length ? <Lanes all={all} /> : <p>No release has failed, was rolled back or is newly in quarantine.</p> : failed ? null : <p role="status">Reading the Rollouts…</p>}
      {all ? <Command text={all.command} note="lists the quarantines in a terminal" /> : null}
    </article>
  );
}

function Lanes({ all }: { all: Incidents }) {
  return (
    <>
      {all.lanes.map((lane) => (
        <section class="lane" key={(lane.digest ?? "") + lane.versions} aria-label={nameOf(lane)}>
          <h2>
            <span title={clean(lane.versions?.join(", "))}>{nameOf(lane)}</span> <span class="dim">{shortened(lane.digest)}</span>{" "}
            {lane.lasts ? <span class="look failed">lasts</span> : <span class="dim">over</span>}
          </h2>
          <Drawing all={all} lane={lane} />
          {lane.omitted ? <p class="dim">{lane.omitted} older events are not shown.</p> : null}
          <Table lane={lane} />
        </section>
      ))}
      {all.omitted ? <p class="dim">{all.omitted} further releases are not shown.</p> : null}
    </>
  );
}

const nameOf = (lane: Lane) => (lane.versions?.length ? lane.versions.map(tag).join(", ") : "a release without a tag");
const shortened = (digest: string | undefined) => (digest ? clean(digest).slice(0, "sha256:".length + 12) : "");
const placeOf = (e: Event) => (e.namespace ? clean(e.namespace) + " / " : "") + clean(e.name);

// The measures of the drawing, in pixels.
const step = 26;
const axis = 20;

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

// Drawing shows when each event began and ended. Everything in it is in the table, too.
function Drawing({ all, lane }: { all: Incidents; lane: Lane }) {
  const [start, end] = [Date.parse(all.from), Date.parse(all.to)];
  const at = (time: number) => Math.min(100, Math.max(0, (100 * (time - start)) / (end - start)));
  const height = lane.events.length * step + axis;
  return (
    <svg class="drawing" height={height} role="img" aria-label={`Time line of ${nameOf(lane)}, which the table below has, too`}>
      {[0, 25, 50, 75, 100].map((percent) => (
        <g class="axis" key={percent}>
          <line x1={percent + "%"} x2={percent + "%"} y1="0" y2={height - axis} />
          <text x={percent + "%"} y={height - 5} text-anchor={percent === 0 ? "start" : percent === 100 ? "end" : "middle"}>
            {percent === 100 ? "now" : clock.format(new Date(start + (percent / 100) * (end - start)))}
          </text>
        </g>
      ))}
      {lane.events.map((e, i) => {
        const look = lookOf(e);
        const [from, to] = [at(Date.parse(e.from)), at(e.to ? Date.parse(e.to) : end)];
        const right = from > 50;
        return (
          <g class={look.id} key={i}>
            <rect x={from + "%"} width={Math.max(0, to - from) + "%"} y={i * step + 16} height="6" />
            <circle cx={from + "%"} cy={i * step + 19} r="4" />
            <text x={(right ? to : from) + "%"} y={i * step + 12} text-anchor={right ? "end" : "start"}>
              {look.sign} {placeOf(e)}
            </text>
          </g>
        );
      })}
    </svg>
  );
}

function Table({ lane }: { lane: Lane }) {
  return (
    <div class="wide" role="region" aria-label={"Events of " + nameOf(lane)} tabIndex={0}>
      <table>
        <caption class="hidden">Events of {nameOf(lane)}, the oldest first</caption>
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col">Where</th>
            <th scope="col">Began</th>
            <th scope="col">Ended</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {lane.events.map((e, i) => (
            <tr key={i}>
              <td>
                <Sign look={lookOf(e)} />
              </td>
              <th scope="row">{e.object === "Rollout" ? <a href={addressOf(e.namespace ?? "", e.name)}>{placeOf(e)}</a> : `${clean(e.object)} ${placeOf(e)}`}</th>
              <td>
                {moment(e.from)} <span class="dim">(<Ago time={e.from} /> ago)</span>
              </td>
              <td>{e.to ? (e.to === e.from ? "" : moment(e.to)) : e.until ? until(e.until, now.value) : "lasts"}</td>
              <td class="why">{clean([e.version ? "to " + e.version : "", e.why, e.by ? `by ${e.by} (claimed)` : ""].filter(Boolean).join("; "))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
