// SPDX-License-Identifier: Apache-2.0

// The environments of each application side by side, and why a release is not in the next one.

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { Environment, Pipelines } from "./answers";
import { rows } from "./fleet";
import { Ago, Command, Sign, Until } from "./parts";
import { addressOf } from "./router";
import { read } from "./server";
import { lookAt } from "./signs";
import { clean, tag } from "./text";
import { me } from "./who";

// same is the content that is lit up everywhere.
const same = signal("");

// calm is the shortest time between two reads.
const calm = 2_000;

export function PipelinePage() {
  const [answer, setAnswer] = useState<{ all?: Pipelines; failed?: string }>({});
  const changed = rows.value;
  useEffect(() => {
    document.title = "Pipelines · Rollouts";
    const stop = new AbortController();
    const timer = setTimeout(
      () =>
        read<Pipelines>("pipelines", stop.signal).then(
          (all) => setAnswer({ all }),
          (error: Error) => stop.signal.aborted || setAnswer((was) => ({ ...was, failed: error.message })),
        ),
      answer.all ? calm : 0,
    );
    return () => (clearTimeout(timer), stop.abort());
  }, [changed]);
  const { all, failed } = answer;
  return (
    <article>
      <h1>Pipelines</h1>
      {[failed, ...(all?.problems ?? [])].map((p) =>
        p ? (
          <p class="problem" role="alert" key={p}>
            {clean(p)}
          </p>
        ) : null,
      )}
      {all ? all.items.length ? all.items.map((p, i) => <Application key={i} name={p.application} environments={p.environments} />) : <p>No application has Environments.</p> : failed ? null : <p role="status">Reading the Environments…</p>}
      {me.value ? <Command text={me.value.pipeline} note="shows the same in a terminal" /> : null}
    </article>
  );
}

function Application({ name, environments }: { name: string; environments: Environment[] }) {
  return (
    <section aria-label={clean(name)} class="pipeline">
      <h2>{clean(name)}</h2>
      <ol>
        {environments.map((e) => (
          <Cell key={[e.cluster, e.namespace, e.rollout, e.environment].join("/")} e={e} />
        ))}
      </ol>
    </section>
  );
}

function Cell({ e }: { e: Environment }) {
  const content = e.runs?.digest ?? e.runs?.version ?? "";
  const first = e.holds?.[0];
  const light = (on: boolean) => () => (same.value = on ? content : "");
  const title = `${clean(e.environment)}${e.cluster ? " in " + clean(e.cluster) : ""}`;
  return (
    <li>
      {e.upstreams?.length ? (
        <div class="arrow">
          <span class="dim">after {e.upstreams.map((u) => clean(u.environment)).join(", ")}</span>
          {e.next ? (
            <span>
              {" "}
              → <strong>{tag(e.next)}</strong> {first ? clean(first.message) : "may go"} <Until time={first?.until} />
            </span>
          ) : null}
        </div>
      ) : null}
      <div class={content && same.value === content ? "cell same" : "cell"} onMouseEnter={light(true)} onMouseLeave={light(false)} onFocusIn={light(true)} onFocusOut={light(false)}>
        <h3>{e.cluster ? title : <a href={addressOf(e.namespace, e.rollout)}>{title}</a>}</h3>
        <p>
          {e.runs ? (
            <>
              <span title={clean(e.runs.version)}>{tag(e.runs.version)}</span> {e.state ? <Sign look={lookAt(e.state, false, first?.until)} /> : clean(e.runs.state)}{" "}
              <span class="dim">
                <Ago time={e.runs.since} />
              </span>
            </>
          ) : (
            "nothing yet"
          )}
        </p>
        {e.behind ? <p class="dim">{e.behind > 0 ? `${e.behind} behind` : `${-e.behind} ahead`}</p> : null}
        {(e.problems ?? []).map((p) => (
          <p class="problem" key={p}>
            {clean(p)}
          </p>
        ))}
      </div>
    </li>
  );
}
