// SPDX-License-Identifier: Apache-2.0

package condition

import "time"

// Tests count work. A slow machine must not change what they find.
func init() { deadline = time.Hour }
