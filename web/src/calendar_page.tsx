// SPDX-License-Identifier: Apache-2.0

// When schedules let promotions start in the coming week. The server says when each is open;
// here are only times of display.

import { useEffect, useState } from "preact/hooks";
import { Command, Problems } from "./parts";
import { read } from "./server";
import { clean } from "./text";
import { moment, now, until } from "./time";

interface Stretch {
  from: string;
  to?: string;
  open?: boolean;
  local: string;
  text: string;
}

interface Schedule {
  kind: string;
  namespace?: string;
  name: string;
  description?: string;
  rollouts?: number;
  problem?: string;
  zone?: string;
  stretches?: Stretch[];
  clockChanges?: string[];
}

interface Calendar {
  from: string;
  to: string;
  schedules: Schedule[];
  omitted?: number;
  problems?: string[];
  command: string;
}

// Schedules are no rows of the list, so nobody says when they change.
const again = 60_000;

export function CalendarPage() {
  const [answer, setAnswer] = useState<{ all?: Calendar; failed?: string }>({});
  useEffect(() => {
    document.title = "Calendar · Rollouts";
    const stop = new AbortController();
    const look = () =>
      document.visibilityState === "visible" &&
      void read<Calendar>("calendar", stop.signal).then(
        (all) => setAnswer({ all }),
        (error: Error) => stop.signal.aborted || setAnswer((was) => ({ ...was, failed: error.message })),
      );
    look();
    const timer = setInterval(look, again);
    document.addEventListener("visibilitychange", look);
    return () => (clearInterval(timer), document.removeEventListener("visibilitychange", look), stop.abort());
  }, []);
  const { all, failed } = answer;
  return (
    <article>
      <h1>Schedules of the next 7 days</h1>
      <Problems of={[failed, ...(all?.problems ?? [])]} />
      {all ? all.schedules.length ? all.schedules.map((s) => <One key={s.kind + s.namespace + s.name} all={all} s={s} />) : <p>There is no schedule: promotions may start at any time.</p> : failed ? null : <p role="status">Reading the schedules…</p>}
      {all?.omitted ? <p class="dim">{all.omitted} further schedules are not shown.</p> : null}
      {all ? <Command text={all.command} note="lists the freezes in a terminal" /> : null}
    </article>
  );
}

const nameOf = (s: Schedule) => `${clean(s.kind)} ${s.namespace ? clean(s.namespace) + " / " : ""}${clean(s.name)}`;

function One({ all, s }: { all: Calendar; s: Schedule }) {
  const first = s.stretches?.[0];
  return (
    <section class="schedule" aria-label={nameOf(s)}>
      <h2>
        {nameOf(s)} <span class="dim">{[s.zone, s.rollouts === undefined ? "" : `${s.rollouts} ${s.rollouts === 1 ? "Rollout" : "Rollouts"}`].filter(Boolean).join(", ")}</span>
      </h2>
      {s.description ? <p>{clean(s.description)}</p> : null}
      {s.problem ? <p class="problem">✗ closed: it cannot be evaluated: {clean(s.problem)}</p> : null}
      {first ? (
        <p>
          <span class={first.open ? "look well" : "look time"}>{first.open ? "✔ open" : "◎ closed"}</span> {first.to ? until(first.to, now.value) : "without an end"}
        </p>
      ) : null}
      {s.stretches ? <Week all={all} s={s} stretches={s.stretches} /> : null}
      {s.stretches && s.stretches.length > 1 ? <Edges s={s} stretches={s.stretches} /> : null}
    </section>
  );
}

const height = 44;
const days = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "2-digit" });

// midnights returns the days of the viewer that begin between two times.
function midnights(from: number, to: number): Date[] {
  const all: Date[] = [];
  const day = new Date(from);
  for (let i = 1; i < 9; i++) {
    const next = new Date(day.getFullYear(), day.getMonth(), day.getDate() + i);
    if (next.getTime() < to) all.push(next);
  }
  return all;
}

function Week({ all, s, stretches }: { all: Calendar; s: Schedule; stretches: Stretch[] }) {
  const [start, end] = [Date.parse(all.from), Date.parse(all.to)];
  const at = (time: number) => Math.min(100, Math.max(0, (100 * (time - start)) / (end - start)));
  return (
    <svg class="drawing" height={height} role="img" aria-label={`When ${nameOf(s)} is open, which the text has, too`}>
      {stretches.map((x) => {
        const [from, to] = [at(Date.parse(x.from)), at(x.to ? Date.parse(x.to) : end)];
        return <rect key={x.from} class={x.open ? "open" : "closed"} x={from + "%"} width={to - from + "%"} y={x.open ? 4 : 12} height={x.open ? 16 : 2} />;
      })}
      {midnights(start, end).map((day) => (
        <g class="axis" key={day.getTime()}>
          <line x1={at(day.getTime()) + "%"} x2={at(day.getTime()) + "%"} y1="0" y2="24" />
          {at(day.getTime()) < 88 ? (
            <text x={at(day.getTime()) + "%"} y="38">
              {days.format(day)}
            </text>
          ) : null}
        </g>
      ))}
      {(s.clockChanges ?? []).map((time) => (
        <text key={time} class="change" x={at(Date.parse(time)) + "%"} y="14" text-anchor="middle">
          ⟲
        </text>
      ))}
    </svg>
  );
}

function Edges({ s, stretches }: { s: Schedule; stretches: Stretch[] }) {
  return (
    <details>
      <summary>Each change</summary>
      {(s.clockChanges ?? []).map((time) => (
        <p key={time}>⟲ clocks change in {clean(s.zone)}: {moment(time)}</p>
      ))}
      <div class="wide" role="region" aria-label={"Changes of " + nameOf(s)} tabIndex={0}>
        <table>
          <caption class="hidden">Changes of {nameOf(s)}</caption>
          <thead>
            <tr>
              <th scope="col">From then on</th>
              <th scope="col">Your time</th>
              <th scope="col">{clean(s.zone)}</th>
              <th scope="col">Rules</th>
            </tr>
          </thead>
          <tbody>
            {stretches.slice(1).map((x) => (
              <tr key={x.from}>
                <th scope="row">{x.open ? "✔ open" : "◎ closed"}</th>
                <td>
                  <time dateTime={x.from}>{moment(x.from)}</time>
                </td>
                <td>{clean(x.local)}</td>
                <td class="why">{clean(x.text)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
