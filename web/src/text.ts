// SPDX-License-Identifier: Apache-2.0

// Text of objects is text: what could change how other text is read is shown as a sign.

const unsafe = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

// clean returns text in one line, without marks that nobody sees.
export function clean(text: string | undefined): string {
  return (text ?? "").replace(/\s*\n\s*/g, " ").replace(unsafe, "\u2423");
}

const longestTag = 24;

// tag cuts a long version in its middle.
export function tag(version: string | undefined): string {
  const text = clean(version);
  if (text.length <= longestTag) return text;
  const half = (longestTag - 1) / 2;
  return text.slice(0, Math.ceil(half)) + "…" + text.slice(text.length - Math.floor(half));
}
