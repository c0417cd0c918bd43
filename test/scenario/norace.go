// SPDX-License-Identifier: Apache-2.0

//go:build !race

package scenario

// raceFlags has the controller built as those are that drive it.
var raceFlags []string
