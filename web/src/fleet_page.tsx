// SPDX-License-Identifier: Apache-2.0

// All Rollouts, what needs attention first.

import { computed, signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Row } from "./answers";
import { complete, link, problem, rows } from "./fleet";
import { Ago, Command, Sign, Until } from "./parts";
import { address, addressOf, go, parameter } from "./router";
import { lookOf, looks, rank } from "./signs";
import { clean, tag } from "./text";
import { me } from "./who";

const query = computed(() => address.value.searchParams.get("q") ?? "");
const only = computed(() => address.value.searchParams.get("state") ?? "");

const words = (row: Row) => [row.namespace + "/" + row.name, row.version, row.next, row.state.cause].join("\n").toLowerCase();

// found are the rows with each word of the search.
const found = computed(() => {
  const parts = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.value.filter((row) => parts.every((part) => words(row).includes(part)));
});

const counts = computed(() => {
  const all = new Map<string, number>();
  for (const row of found.value) all.set(lookOf(row).id, (all.get(lookOf(row).id) ?? 0) + 1);
  return all;
});

const shown = computed(() => {
  const of = found.value.map((row) => ({ row, rank: rank.get(lookOf(row).id)! }));
  return of
    .filter(({ row }) => !only.value || lookOf(row).id === only.value)
    .sort((a, b) => a.rank - b.rank || order(a.row.namespace, b.row.namespace) || order(a.row.name, b.row.name))
    .map(({ row }) => row);
});

const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

// height of a row, as in the style sheet.
const narrow = matchMedia("(max-width: 760px)");
const heightNow = () => (narrow.matches ? 72 : 36);
const around = 10;
const chosen = signal(-1);

export function FleetPage() {
  return (
    <>
      <Filters />
      {shown.value.length ? <Table /> : <Nothing />}
      {me.value ? <Command text={me.value.command} note="shows the same in a terminal" /> : null}
    </>
  );
}

function Filters() {
  const search = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
      event.preventDefault();
      search.current?.focus();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  return (
    <div class="filters">
      <input
        ref={search}
        type="search"
        aria-label="Search namespace, name, version and reason"
        placeholder="/ search"
        value={query.value}
        maxLength={200}
        onInput={(event) => parameter("q", event.currentTarget.value)}
      />
      <div role="group" aria-label="Filter by state">
        <Filter id="" text={`${found.value.length.toLocaleString("en")} all`} />
        {looks.map((l) => {
          const n = counts.value.get(l.id) ?? 0;
          return n || only.value === l.id ? <Filter key={l.id} id={l.id} text={`${l.sign} ${n.toLocaleString("en")} ${l.label}`} /> : null;
        })}
      </div>
    </div>
  );
}

function Filter({ id, text }: { id: string; text: string }) {
  return (
    <button type="button" class={"filter " + id} aria-pressed={only.value === id} onClick={() => parameter("state", id)}>
      {text}
    </button>
  );
}

// Nothing says why there are no rows: each reason has words of its own.
function Nothing() {
  const where = me.value?.namespace ? "namespace " + me.value.namespace : "any namespace";
  const text = rows.value.length
    ? "No Rollout matches."
    : problem.value
      ? "The Rollouts cannot be read: " + clean(problem.value)
      : link.value === "reading" || !complete.value
        ? "Reading the Rollouts…"
        : `There is no Rollout in ${where}.`;
  return (
    <p class="nothing" role="status">
      {text}{" "}
      {rows.value.length ? (
        <button type="button" onClick={() => go("/")}>
          show all
        </button>
      ) : null}
    </p>
  );
}

// Table has in the document only the rows that can be seen.
function Table() {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [seen, setSeen] = useState(20);
  const [height, setHeight] = useState(heightNow());
  useEffect(() => {
    const look = () => {
      const height = heightNow();
      setHeight(height);
      const start = box.current?.getBoundingClientRect().top ?? 0;
      setTop(Math.max(0, Math.floor(-start / height)));
      setSeen(Math.ceil(innerHeight / height));
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => (removeEventListener("scroll", look), removeEventListener("resize", look));
  }, []);
  const all = shown.value;
  const first = Math.max(0, Math.min(top, all.length - 1) - around);
  const last = Math.min(all.length, top + seen + around);
  return (
    <div class="scrolled" ref={box}>
      <table aria-rowcount={all.length + 1}>
        <caption class="hidden">Rollouts, what needs attention first</caption>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col">State</th>
            <th scope="col">Name, namespace</th>
            <th scope="col">Runs</th>
            <th scope="col">Next</th>
            <th scope="col">Waits for</th>
          </tr>
        </thead>
        <tbody onKeyDown={(event) => move(event, all)}>
          <Space pixels={first * height} />
          {all.slice(first, last).map((row, i) => (
            <Line key={row.namespace + "/" + row.name} row={row} at={first + i} />
          ))}
          <Space pixels={(all.length - last) * height} />
        </tbody>
      </table>
    </div>
  );
}

function Space({ pixels }: { pixels: number }) {
  const cell = useRef<HTMLTableCellElement>(null);
  useEffect(() => {
    if (cell.current) cell.current.style.height = pixels + "px"; // by the object model: the policy forbids style attributes
  }, [pixels]);
  return pixels > 0 ? (
    <tr aria-hidden="true">
      <td ref={cell} colSpan={5} class="space" />
    </tr>
  ) : null;
}

function Line({ row, at }: { row: Row; at: number }) {
  const look = lookOf(row);
  return (
    <tr aria-rowindex={at + 2}>
      <td>
        <Sign look={look} />
      </td>
      <th scope="row">
        <a href={addressOf(row.namespace, row.name)} data-row={at} onFocus={() => (chosen.value = at)}>
          {clean(row.name)}
        </a>{" "}
        <span class="dim">{clean(row.namespace)}</span>
      </th>
      <td title={clean(row.version)}>
        {row.version ? tag(row.version) : "nothing yet"} <span class="dim">{<Ago time={row.since} />}</span>
        {row.pinned ? <span class="dim"> pinned</span> : null}
      </td>
      <td title={clean(row.next)}>{row.next ? tag(row.next) : ""}</td>
      <td class="why" title={clean(row.state.cause)}>
        {row.request ? <strong>a request {row.request === "waits" ? "waits" : "was refused"}; </strong> : null}
        {look.id === "well" && !row.pinned ? "" : clean(row.state.cause)} <Until time={row.until} />
      </td>
    </tr>
  );
}

// move goes through the rows by the arrow keys.
function move(event: KeyboardEvent, all: Row[]): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const to = Math.min(all.length - 1, Math.max(0, chosen.value + step));
  document.querySelector<HTMLElement>(`[data-row="${to}"]`)?.focus();
}
