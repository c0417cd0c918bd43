// SPDX-License-Identifier: Apache-2.0

package main

import "k8s.io/client-go/tools/record"

// eventLimits are how many events about one object are sent in a row, how many
// more per second, and how many alike before they are folded into one. A
// coordination tells of each of its Deployments several times, and Kubernetes
// would be silent from the 26th event on.
var eventLimits = record.CorrelatorOptions{BurstSize: 300, QPS: 1, MaxEvents: 100}

// newBroadcaster sends events for as long as the process runs.
func newBroadcaster() record.EventBroadcaster {
	return record.NewBroadcasterWithCorrelatorOptions(eventLimits)
}
