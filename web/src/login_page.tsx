// SPDX-License-Identifier: Apache-2.0

// The page of a cluster, for who has not logged in.

import { useSignal } from "@preact/signals";
import { present } from "./server";
import { clean } from "./text";

export function LoginPage({ why }: { why: string }) {
  const problem = useSignal("");
  const busy = useSignal(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    const field = (event.target as HTMLFormElement).elements.namedItem("token") as HTMLInputElement;
    busy.value = true;
    problem.value = await present(field.value).catch((error: Error) => error.message);
    busy.value = false;
    field.value = "";
    if (!problem.value) location.reload();
    else field.focus();
  };
  document.title = "Log in: Rollouts";
  return (
    <form class="login" onSubmit={submit}>
      <h1>Rollouts</h1>
      <p>To see Rollouts, {clean(why)}.</p>
      <label for="token">Token</label>
      <input id="token" name="token" type="password" autocomplete="off" required autofocus aria-describedby="kept" />
      <button disabled={busy.value}>Log in</button>
      <p class="problem" role="alert">
        {clean(problem.value)}
      </p>
      <p id="kept" class="dim">
        You see what this token may read. It is kept in the memory of the server until you log out, for eight hours at most.
      </p>
    </form>
  );
}
