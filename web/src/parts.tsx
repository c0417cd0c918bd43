// SPDX-License-Identifier: Apache-2.0

// Small parts that several pages have.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { clean } from "./text";
import { age, moment, now, until } from "./time";

export function Sign({ look }: { look: { id: string; sign: string; word: string } }) {
  return (
    <span class={"look " + look.id}>
      <span aria-hidden="true">{look.sign}</span> {look.word}
    </span>
  );
}

// Ago is how long ago something was; its title is the time itself.
export function Ago({ time }: { time: string | undefined }) {
  return time ? (
    <time dateTime={time} title={moment(time)}>
      {age(time, now.value)}
    </time>
  ) : null;
}

export function Until({ time }: { time: string | undefined }) {
  return time ? (
    <time class="until" dateTime={time}>
      {until(time, now.value)}
    </time>
  ) : null;
}

// Command is a command to copy.
export function Command({ text, note }: { text: string; note?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  return (
    <div class="command">
      <code>{clean(text)}</code>
      <button type="button" onClick={copy} aria-label={"Copy: " + clean(text)}>
        {copied ? "copied" : "copy"}
      </button>
      {note ? <span class="note">{note}</span> : null}
    </div>
  );
}

export function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

// Problems are what could not be read, each said aloud.
export function Problems({ of }: { of: (string | undefined)[] }) {
  return (
    <>
      {of.map((p) =>
        p ? (
          <p class="problem" role="alert" key={p}>
            {clean(p)}
          </p>
        ) : null,
      )}
    </>
  );
}
