// SPDX-License-Identifier: Apache-2.0

// The address of the page has its whole state, so what one sees can be sent.

import { signal } from "@preact/signals";

export const address = signal(new URL(location.href));

// go opens an address of this page. With replace, "back" does not return to the present one.
export function go(to: string, replace = false): void {
  const next = new URL(to, location.href);
  if (next.href === location.href) return;
  history[replace ? "replaceState" : "pushState"](null, "", next);
  address.value = next;
  if (!replace) {
    scrollTo(0, 0);
    document.querySelector<HTMLElement>("main")?.focus();
  }
}

// parameter sets a part of the address; empty removes it.
export function parameter(name: string, value: string): void {
  const next = new URL(location.href);
  if (value) next.searchParams.set(name, value);
  else next.searchParams.delete(name);
  go(next.href, true);
}

export function route(): void {
  addEventListener("popstate", () => (address.value = new URL(location.href)));
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest?.("a");
    const other = event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey;
    if (!link || other || link.origin !== location.origin) return;
    event.preventDefault();
    go(link.href);
  });
}

export const addressOf = (namespace: string, name: string) => `/rollouts/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
