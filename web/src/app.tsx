// SPDX-License-Identifier: Apache-2.0

import { effect } from "@preact/signals";
import { render } from "preact";
import { CalendarPage } from "./calendar_page";
import { FleetPage } from "./fleet_page";
import { link, problem, watchWhileVisible } from "./fleet";
import { IncidentPage } from "./incident_page";
import { LoginPage } from "./login_page";
import { PipelinePage } from "./pipeline_page";
import { RolloutPage } from "./rollout_page";
import { address, route } from "./router";
import { ended, leave, login, shared } from "./server";
import { clean } from "./text";
import { now, tick } from "./time";
import { introduce, me } from "./who";

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

// Live says whether what is shown is as it is now.
function Live() {
  const at = clock.format(new Date(now.value));
  const text = { reading: "reading", live: `live ${at}`, reconnecting: "reconnecting", away: "the API server does not answer" }[link.value];
  return (
    <span class={"live " + link.value} title={clean(problem.value)}>
      <span aria-hidden="true">●</span> {text}
    </span>
  );
}

function Page() {
  const parts = address.value.pathname.split("/").filter(Boolean).map(decodeURIComponent);
  if (parts[0] === "rollouts" && parts[1] && parts[2]) return <RolloutPage namespace={parts[1]} name={parts[2]} />;
  if (parts[0] === "pipelines") return <PipelinePage />;
  if (parts[0] === "incidents") return <IncidentPage />;
  if (parts[0] === "calendar") return <CalendarPage />;
  document.title = "Rollouts";
  return <FleetPage />;
}

function App() {
  if (ended.value && shared)
    return (
      <main>
        <LoginPage why={ended.value} />
      </main>
    );
  if (ended.value)
    return (
      <main>
        <p class="problem" role="alert">
          This page is not connected: {clean(ended.value)}.
        </p>
      </main>
    );
  const current = (path: string) => (address.value.pathname === path ? "page" : undefined);
  return (
    <>
      <header>
        <nav aria-label="Pages">
          <a href="/" aria-current={current("/")}>
            Rollouts
          </a>
          <a href="/pipelines" aria-current={current("/pipelines")}>
            Pipelines
          </a>
          <a href="/incidents" aria-current={current("/incidents")}>
            Incidents
          </a>
          <a href="/calendar" aria-current={current("/calendar")}>
            Calendar
          </a>
        </nav>
        <span class="who">
          {me.value ? `${clean(me.value.cluster)} · ${clean(me.value.user)}` : ""} {shared && <button onClick={leave}>Log out</button>} <Live />
        </span>
      </header>
      <main tabIndex={-1}>
        <Page />
      </main>
    </>
  );
}

// announce says at most once in ten seconds what those should hear who do not look.
const quiet = 10_000;
function announce(text: string): void {
  const region = document.getElementById("said");
  if (region) region.textContent = text;
}
let said = 0;
effect(() => {
  const text = link.value === "away" ? "The API server does not answer." : link.value === "reconnecting" ? "The connection is lost, and tried again." : "";
  if (text && Date.now() - said > quiet) {
    said = Date.now();
    announce(text);
  }
});

async function start(): Promise<void> {
  route();
  render(<App />, document.getElementById("app")!);
  setInterval(tick, 1000);
  try {
    await login();
    await introduce();
  } catch (error) {
    if (!ended.value) problem.value = (error as Error).message;
  }
  watchWhileVisible();
}

void start();
