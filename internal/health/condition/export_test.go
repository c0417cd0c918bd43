// SPDX-License-Identifier: Apache-2.0

package condition

import "time"

// Tests count work. A slow machine must not change what they find.
func init() { deadline = time.Hour }

// Left returns how much work is left.
func (a *Allowance) Left() int { return a.left }

// Use takes some work.
func (a *Allowance) Use(n int) { a.left -= n }
