// SPDX-License-Identifier: Apache-2.0

// Who looks at which cluster.

import { signal } from "@preact/signals";
import type { Me } from "./answers";
import { read } from "./server";

export const me = signal<Me | undefined>(undefined);

export async function introduce(): Promise<void> {
  me.value = await read<Me>("me");
}
