// SPDX-License-Identifier: Apache-2.0

// The changes that the page can ask for: what each would do is shown before it is sent.

import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Offer, Pending, Prediction } from "./answers";
import { Ago, Command } from "./parts";
import { addressOf } from "./router";
import { request } from "./server";
import { clean } from "./text";
import { me } from "./who";

// sent counts the changes that the API server has stored.
export const sent = signal(0);

const chosen = signal<{ namespace: string; name: string; offer: Offer; opener: HTMLElement } | undefined>(undefined);

interface Of {
  namespace: string;
  name: string;
}

// Act is the button of an action. One that the user may not do says which right is missing.
export function Act({ of, offer }: { of: Of; offer: Offer | undefined }) {
  if (!offer) return null;
  return (
    <button
      type="button"
      class="act"
      aria-disabled={offer.lacks ? true : undefined}
      title={clean(offer.lacks)}
      onClick={(event) => offer.lacks || (chosen.value = { namespace: of.namespace, name: of.name, offer, opener: event.currentTarget })}
    >
      {clean(offer.title)}…{offer.lacks ? <span class="hidden"> ({clean(offer.lacks)})</span> : null}
    </button>
  );
}

// Acts are the buttons of several actions.
export function Acts({ of, offers, label }: { of: Of; offers: Offer[] | undefined; label: string }) {
  if (!offers?.length) return null;
  const lacks = [...new Set(offers.map((o) => o.lacks).filter(Boolean))];
  return (
    <div class="acts" role="group" aria-label={label}>
      {offers.map((offer, i) => (
        <Act key={i} of={of} offer={offer} />
      ))}
      {lacks.length ? <span class="note">{clean(lacks.join("; "))}</span> : null}
    </div>
  );
}

const same = (offer: Offer, p: Pending) => offer.verb === p.verb && JSON.stringify(offer.args) === JSON.stringify(p.args);

// others are the offers that have no place of their own.
export function others(offers: Offer[] | undefined, shown: number, requests: Pending[] = []): Offer[] | undefined {
  return offers?.slice(shown).filter((o) => !requests.some((p) => same(o, p)));
}

// Requests are those that have had no effect so far.
export function Requests({ of, requests, offers }: { of: Of; requests: Pending[] | undefined; offers: Offer[] | undefined }) {
  return (
    <>
      {(requests ?? []).map((p, i) => (
        <div class="request" key={i}>
          <p class={p.refused ? "problem" : ""}>
            {p.text ? (
              <>
                asked{p.by ? ` by ${clean(p.by)} (claimed)` : ""}
                {p.since ? (
                  <>
                    {" "}
                    <Ago time={p.since} /> ago
                  </>
                ) : null}
                : {clean(p.text)}
              </>
            ) : null}
            {p.refused ? `${p.text ? ": " : ""}refused: ${clean(p.refused)}` : ": waits"}
          </p>
          <Act of={of} offer={offers?.find((o) => same(o, p))} />
        </div>
      ))}
    </>
  );
}

export function ActionDialog() {
  const open = chosen.value;
  useEffect(() => () => void (chosen.value = undefined), []);
  return open ? <Dialog {...open} /> : null;
}

type Step = { prediction?: Prediction; said?: string[]; failed?: string; changed?: boolean; busy?: boolean };

const quoted = (text: string) => "'" + text.replaceAll("'", `'\\''`) + "'";

// withReason puts the reason into a command, which has an empty one.
const withReason = (command: string, reason: string, required: boolean) =>
  reason ? command.replace("-m ''", () => "-m " + quoted(reason)) : required ? command : command.replace(" -m ''", "");

const lost = "There was no answer, so nobody knows whether it was sent. Try again: it is made once.";

function Dialog({ namespace, name, offer, opener }: Of & { offer: Offer; opener: HTMLElement }) {
  const box = useRef<HTMLDialogElement>(null);
  const why = useRef<HTMLInputElement>(null);
  const [step, setStep] = useState<Step>({ busy: true });
  const [reason, setReason] = useState("");
  const [tries, setTries] = useState(0);
  const seen = step.prediction?.seen;
  // One key for what is one change, also where an answer was lost.
  const key = useMemo(() => crypto.randomUUID(), [seen, reason, tries]);
  const path = addressOf(namespace, name).slice(1);
  const action = { verb: offer.verb, name: offer.name, args: offer.args };

  useEffect(() => {
    box.current?.showModal();
    box.current?.querySelector("h2")?.focus();
    void predict();
  }, []);
  useEffect(() => why.current?.focus(), [!!seen]);

  async function predict() {
    try {
      const { code, answer } = await request(path + "/predict", action);
      setStep(code === 200 ? { prediction: answer } : { failed: answer.message });
    } catch {
      setStep({ failed: "The server does not answer." });
    }
  }

  async function send() {
    if (step.busy || !seen) return;
    setStep({ ...step, busy: true, failed: "", changed: false });
    try {
      const { code, answer } = await request(path + "/requests", { ...action, reason: reason.trim(), seen }, { "Idempotency-Key": key });
      if (code === 200) {
        setStep({ said: answer.said });
        sent.value++;
        return;
      }
      if (code < 500) setTries(tries + 1); // the answer is known: another try is another change
      setStep(code === 409 && answer.seen ? { prediction: answer, changed: true } : { ...step, busy: false, changed: false, failed: code < 500 ? answer.message : `${lost} ${answer.message}` });
    } catch {
      setStep({ ...step, busy: false, changed: false, failed: lost });
    }
  }

  const close = () => box.current?.close();
  // The button may be gone: what follows is on the page.
  const closed = () => {
    chosen.value = undefined;
    (opener.isConnected ? opener : document.querySelector<HTMLElement>("main"))?.focus();
  };
  const p = step.prediction;
  const required = p?.reason === "required";
  return (
    <dialog ref={box} aria-labelledby="action" onClose={closed}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <h2 id="action" tabIndex={-1}>
          {clean(offer.title)} <span class="dim">{clean(namespace) + " / " + clean(name)}</span>
        </h2>
        <div aria-live="polite">
          {step.busy && !p ? <p>Reading what it would do…</p> : null}
          {step.changed ? <p class="caution">The effect is another now, and nothing was sent. Look again:</p> : null}
          {(p?.cautions ?? []).map((text) => (
            <p class="caution" key={text}>
              <span aria-hidden="true">⚠</span> {clean(text)}
            </p>
          ))}
          {(p?.effect ?? []).map((text) => (
            <p class="effect" key={text}>
              {clean(text)}
            </p>
          ))}
          {(p?.notes ?? []).map((text) => (
            <p class="dim" key={text}>
              {clean(text)}
            </p>
          ))}
          {step.failed ? <Failure text={step.failed} /> : null}
          {step.said ? (
            <>
              {step.said.map((text) => (
                <p key={text}>{clean(text)}</p>
              ))}
              <p class="dim">The API server has stored this. The page shows what follows from it.</p>
            </>
          ) : null}
        </div>
        {p && p.reason !== "none" ? (
          <label>
            Why{required ? " (required)" : ""}
            <input ref={why} value={reason} required={required} maxLength={1000} disabled={!!step.busy} onInput={(event) => setReason(event.currentTarget.value)} />
          </label>
        ) : null}
        {p ? (
          <>
            <p class="dim">as {clean(me.value?.user)}</p>
            <Command text={withReason(p.command, reason.trim(), required)} note="does the same in a terminal" />
          </>
        ) : null}
        <div class="acts">
          {p ? (
            <button type="submit" aria-disabled={step.busy ? true : undefined}>
              {step.busy ? "Sending…" : clean(offer.title)}
            </button>
          ) : null}
          <button type="button" onClick={close}>
            {step.said ? "Close" : "Cancel"}
          </button>
        </div>
      </form>
    </dialog>
  );
}

// Failure says why something was refused. What can be done about it is in the lines below.
function Failure({ text }: { text: string }) {
  const [first, ...rest] = text.split("\n");
  return (
    <>
      <p class="caution" role="alert">
        {clean(first)}
      </p>
      {rest.map((line) => {
        const [command, note] = line.split("   # ");
        return <Command key={line} text={command!} {...(note ? { note } : {})} />;
      })}
    </>
  );
}
