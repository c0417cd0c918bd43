// SPDX-License-Identifier: Apache-2.0

// One Rollout: why a release is not out, and when it will be.

import { useEffect, useState } from "preact/hooks";
import { Act, ActionDialog, Acts, others, Requests, sent } from "./action";
import type { Candidate, Command as Remedy, Entry, Hold, Node, Offer, RolloutPage as Page } from "./answers";
import { complete, rowOf } from "./fleet";
import { Ago, Command, Section, Sign, Until } from "./parts";
import { read, Refused } from "./server";
import { lookAt, ofNodes } from "./signs";
import { clean, tag } from "./text";
import { moment, span } from "./time";

// Flux objects change without the Rollout while a release is on its way.
const whileMoving = 3_000;
const atRest = 60_000;

// usePage reads the page again when the row has changed, and now and then.
function usePage(namespace: string, name: string): { page?: Page; failed?: Refused } {
  const [answer, setAnswer] = useState<{ page?: Page; failed?: Refused }>({});
  const row = rowOf(namespace, name);
  const moving = row?.state.kind === "Deploying" || row?.state.kind === "Baking";
  const version = JSON.stringify(row);
  useEffect(() => {
    const stop = new AbortController();
    const look = async () => {
      if (document.visibilityState !== "visible") return;
      try {
        const page = await read<Page>(`rollouts/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`, stop.signal);
        if (!stop.signal.aborted) setAnswer({ page });
      } catch (error) {
        if (!stop.signal.aborted) setAnswer((was) => ({ ...was, failed: error as Refused }));
      }
    };
    void look();
    const timer = setInterval(look, moving ? whileMoving : atRest);
    return () => (clearInterval(timer), stop.abort());
  }, [namespace, name, version, moving, sent.value]);
  return answer;
}

export function RolloutPage({ namespace, name }: { namespace: string; name: string }) {
  const { page, failed } = usePage(namespace, name);
  const title = `${namespace} / ${name}`;
  useEffect(() => {
    document.title = `${title} · Rollouts`;
  }, [title]);
  const gone = complete.value && !rowOf(namespace, name);
  return (
    <article>
      <h1>
        <span class="dim">{clean(namespace)} /</span> {clean(name)}
      </h1>
      {failed ? (
        <p class="problem" role="alert">
          {clean(failed.message)}
          {page ? ` What is below is as of ${moment(page.explanation.at)}.` : ""}
        </p>
      ) : null}
      {page ? <Known page={page} /> : failed ? null : <p role="status">{gone ? "There is no such Rollout." : "Reading what decides about it…"}</p>}
    </article>
  );
}

function Known({ page }: { page: Page }) {
  const x = page.explanation;
  const look = lookAt(x.state, x.rollback?.done, x.candidates[0]?.holds?.[0]?.until);
  return (
    <>
      <p class="head">
        <Sign look={look} />
        {x.current ? (
          <>
            {" "}
            <strong title={clean(x.current.version.tag)}>{tag(x.current.version.tag)}</strong> {x.current.bakeStatus} for <Ago time={x.current.timestamp} />
            {x.current.triggeredBy?.kind === "User" && x.current.triggeredBy.name ? ` by ${clean(x.current.triggeredBy.name)} (claimed)` : ""}
            {x.current.message ? `: ${clean(x.current.message)}` : ""}
          </>
        ) : (
          " nothing is deployed yet"
        )}
      </p>
      <p class="sentence">{clean(x.state.cause)}</p>
      {x.rollback ? (
        <p class="problem">
          {clean(x.rollback.reason)}: {clean(x.rollback.message)} <Until time={x.rollback.until} />
        </p>
      ) : null}
      {(x.problems ?? []).map((p) => (
        <p class="problem" key={p.reason + p.message}>
          <span aria-hidden="true">⚠</span> {clean(p.reason)}: {clean(p.message)}
        </p>
      ))}
      <Requests of={x} requests={page.requests} offers={page.offers?.[0]} />
      <Remedies of={x} commands={page.commands[0]} remedies={x.remedies} offers={page.offers?.[0]} />
      <Acts of={x} offers={others(page.offers?.[0], page.commands[0]?.length ?? 0, page.requests)} label="Actions" />
      <ActionDialog />
      <Section title="Next">
        {x.candidates.length ? x.candidates.map((c, i) => <Next key={c.version} of={x} candidate={c} commands={page.commands[i + 1]} offers={page.offers?.[i + 1]} />) : <p>There is no newer release.</p>}
        {page.forecast ? <p class="forecast">{clean(page.forecast)}</p> : null}
        <Command text={page.explain} note="says the same in a terminal" />
      </Section>
      <Section title="What the release reaches">
        <ul class="tree">
          {(page.tree.root.children ?? []).map((node, i) => (
            <Branch key={i} node={node} />
          ))}
        </ul>
      </Section>
      <Section title="History">
        <History entries={page.history} />
      </Section>
    </>
  );
}

interface Of {
  namespace: string;
  name: string;
}

function Remedies({ of, commands, remedies, offers }: { of: Of; commands: string[] | undefined; remedies: Remedy[] | undefined; offers: Offer[] | undefined }) {
  return (
    <>
      {(commands ?? []).map((text, i) => {
        const left = remedies?.[i]?.left ?? [];
        return (
          <div class="remedy" key={text}>
            <Act of={of} offer={offers?.[i]} />
            <Command text={text} {...(!remedies?.[i]?.promotes && left.length ? { note: "then still held: " + left.join(", ") } : {})} />
          </div>
        );
      })}
    </>
  );
}

function Next({ of, candidate, commands, offers }: { of: Of; candidate: Candidate; commands: string[] | undefined; offers: Offer[] | undefined }) {
  const holds = candidate.holds ?? [];
  return (
    <div class="candidate">
      <h3 title={clean(candidate.version)}>
        {tag(candidate.version)} <span class="dim">{holds.length ? `held by ${holds.length}` : "nothing holds it"}</span>
      </h3>
      <ol class="holds">
        {holds.map((hold, i) => (
          <Ladder key={i} hold={hold} />
        ))}
      </ol>
      <Remedies of={of} commands={commands} remedies={candidate.remedies} offers={offers} />
      <Acts of={of} offers={others(offers, commands?.length ?? 0)} label={"Actions on " + clean(candidate.version)} />
    </div>
  );
}

function Ladder({ hold }: { hold: Hold }) {
  const look = hold.until ? { id: "time", sign: "◎", word: "waits for time:" } : { id: "person", sign: "✗", word: "held:" };
  return (
    <li>
      <span class={"look " + look.id}>
        <span aria-hidden="true">{look.sign}</span>
        <span class="hidden">{look.word}</span> {clean(hold.reason)}
      </span>{" "}
      {clean(hold.message)} <Until time={hold.until} />
      {(hold.details ?? []).map((detail) => (
        <div class="dim" key={detail}>
          {clean(detail)}
        </div>
      ))}
    </li>
  );
}

// Branch shows a node, and what is below it. What is well is closed.
function Branch({ node }: { node: Node }) {
  const look = ofNodes[node.sign] ?? ofNodes["Unknown"]!;
  const name = node.object ? `${node.object.kind}/${node.object.name}` : node.name;
  const line = (
    <>
      <span class={"look " + look.id} aria-hidden="true">
        {look.sign}
      </span>{" "}
      {clean(name)} <span class="hidden">{look.word}</span> <span class="dim">{clean(node.message || node.text)}</span> <Until time={node.until} />
    </>
  );
  if (!node.children?.length) return <li>{line}</li>;
  return (
    <li>
      <details open={node.sign !== "Well"}>
        <summary>{line}</summary>
        <ul>
          {node.children.map((child, i) => (
            <Branch key={i} node={child} />
          ))}
        </ul>
      </details>
    </li>
  );
}

function History({ entries }: { entries: Entry[] }) {
  if (!entries.length) return <p>Nothing was promoted yet.</p>;
  return (
    <div class="wide" role="region" aria-label="Promotions" tabIndex={0}>
    <table>
      <caption class="hidden">Promotions, the newest first</caption>
      <thead>
        <tr>
          <th scope="col">#</th>
          <th scope="col">Version</th>
          <th scope="col">Promoted</th>
          <th scope="col">State</th>
          <th scope="col">Baked</th>
          <th scope="col">By</th>
          <th scope="col">Why</th>
        </tr>
      </thead>
      <tbody>
        {entries.map((e, i) => (
          <tr key={i}>
            <td>{e.id ?? ""}</td>
            <th scope="row" title={clean(e.version.tag)}>
              {tag(e.version.tag)}
            </th>
            <td>{moment(e.timestamp)}</td>
            <td class={e.bakeStatus === "Failed" ? "failed" : ""}>{e.bakeStatus ?? ""}</td>
            <td>{e.bakeStartTime && e.bakeEndTime ? span(Date.parse(e.bakeEndTime) - Date.parse(e.bakeStartTime)) : ""}</td>
            <td>{clean(e.triggeredBy?.name)}</td>
            <td class="why">{clean([e.message, e.bakeStatus === "Failed" ? e.bakeStatusMessage : ""].filter(Boolean).join("; "))}</td>
          </tr>
        ))}
      </tbody>
    </table>
    </div>
  );
}
